/** Label selectors as kubectl takes them: `a=b,c!=d,e in (x,y),f notin (z),g,!h`. Pure. */

export type Requirement =
  | { operator: 'in' | 'notin'; key: string; values: readonly string[] }
  | { operator: 'exists' | 'absent'; key: string };

/** A selector that cannot be read; the message says where. */
export class SelectorInvalid extends Error {
  constructor(part: string) {
    super(
      `selector part "${part.trim()}" is none of key, !key, key=value, key!=value, key in (a,b), key notin (a,b)`,
    );
    this.name = 'SelectorInvalid';
  }
}

const key = '([A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?)';
const value = '([A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?';
const equality = new RegExp(`^${key}\\s*(==|=|!=)\\s*${value}$`);
const set = new RegExp(`^${key}\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const existence = new RegExp(`^(!?)\\s*${key}$`);
const wholeValue = new RegExp(`^${value}$`);

/** All requirements of a selector; an empty one has none. Throws SelectorInvalid. */
export function parseSelector(selector: string): Requirement[] {
  if (selector.trim() === '') return [];
  // A comma inside parentheses separates values, not requirements.
  return selector.split(/,(?![^()]*\))/).map(parseRequirement);
}

function parseRequirement(part: string): Requirement {
  const text = part.trim();
  const equal = equality.exec(text);
  if (equal?.[1] !== undefined) {
    const operator = equal[2] === '!=' ? 'notin' : 'in';
    return { key: equal[1], operator, values: [equal[3] ?? ''] };
  }
  const sets = set.exec(text);
  if (sets?.[1] !== undefined) {
    const values = (sets[3] ?? '').split(',').map((name) => name.trim());
    if (!values.every((name) => wholeValue.test(name))) throw new SelectorInvalid(part);
    return { key: sets[1], operator: sets[2] === 'notin' ? 'notin' : 'in', values };
  }
  const exists = existence.exec(text);
  if (exists?.[2] === undefined) throw new SelectorInvalid(part);
  return { key: exists[2], operator: exists[1] === '!' ? 'absent' : 'exists' };
}

/** As Kubernetes: `!=` and `notin` also hold where the label is absent. */
export function matches(
  requirements: readonly Requirement[],
  labels: Readonly<Record<string, string>>,
): boolean {
  return requirements.every((requirement) => {
    const label = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined;
    switch (requirement.operator) {
      case 'exists':
        return label !== undefined;
      case 'absent':
        return label === undefined;
      case 'in':
        return label !== undefined && requirement.values.includes(label);
      case 'notin':
        return label === undefined || !requirement.values.includes(label);
    }
    return requirement satisfies never;
  });
}
