/** YAML text to plain values, with problems in our own words: those of the library quote the file, which may hold secrets. */
import {
  isCollection,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type ErrorCode,
  type YAMLError,
} from 'yaml';

/** The file's value, or why there is none. Every problem begins with its line. */
export type YamlResult = { ok: true; value: unknown } | { ok: false; problems: string[] };

const words: Partial<Record<ErrorCode, string>> = {
  TAB_AS_INDENT: 'a tab is used for indentation; use spaces',
  DUPLICATE_KEY: 'this key appears twice in the same mapping; keep one of them',
  MULTIPLE_DOCS: 'a second document begins with ---; the file must hold one',
  BAD_INDENT:
    'the indentation does not fit the lines around it, or a bracket before it is not closed',
  MISSING_CHAR: 'a quote, bracket, comma or colon is missing here or before',
  BAD_SCALAR_START: 'a value cannot begin with this character; put the value in quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'a second «key: value» on one line; put the value in quotes or on a line of its own',
  MULTILINE_IMPLICIT_KEY: 'a key spans several lines; a colon may be missing',
  BAD_DQ_ESCAPE: 'an unknown escape in a double-quoted value; use single quotes',
  TAG_RESOLVE_FAILED: 'a tag (a word beginning with !) that is not known; put the value in quotes',
  UNEXPECTED_TOKEN: 'something here does not belong to the structure around it',
};

/** Reads one YAML 1.2 document; anchors, aliases and merge keys (`<<`) are understood. */
export function readYaml(text: string): YamlResult {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    prettyErrors: false,
    lineCounter: lines,
    merge: true,
    logLevel: 'error',
  });
  const at = (offset: number, problem: string): [number, string] => [
    lines.linePos(offset).line,
    problem,
  ];
  const found = [...withoutEchoes(document.errors), ...document.warnings].map(({ code, pos }) =>
    at(pos[0], words[code] ?? 'this is not valid YAML'),
  );
  found.push(...structureProblems(document, at));
  if (found.length > 0) return { ok: false, problems: firstPerLine(found) };
  if (document.contents === null) {
    return {
      ok: false,
      problems: ['the file is empty; write `providers: []` for no provider at all'],
    };
  }
  return plainValue(document);
}

function structureProblems(
  document: Document.Parsed,
  at: (offset: number, problem: string) => [number, string],
): [number, string][] {
  const found: [number, string][] = [];
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return;
      found.push(
        at(
          alias.range?.[0] ?? 0,
          'an alias (*name) whose anchor (&name) is not set before it; if a text is meant, put it in quotes',
        ),
      );
    },
    Pair(_, pair) {
      if (!isCollection(pair.key)) return;
      found.push(
        at(pair.key.range?.[0] ?? 0, 'a list or mapping is used as a key; a key must be text'),
      );
    },
  });
  return found;
}

/** One slip in the indentation makes lines after it look wrong too. */
function withoutEchoes(errors: readonly YAMLError[]): YAMLError[] {
  const first = errors.find(({ code }) => code === 'BAD_INDENT' || code === 'TAB_AS_INDENT');
  return errors.filter((error) => error === first || error.code !== 'BAD_INDENT');
}

/** One problem a line: the parser often stumbles several times over the same mistake. */
function firstPerLine(found: [number, string][]): string[] {
  const byLine = new Map<number, string>();
  for (const [line, problem] of found) if (!byLine.has(line)) byLine.set(line, problem);
  return [...byLine].sort(([a], [b]) => a - b).map(([line, problem]) => `line ${line}: ${problem}`);
}

function plainValue(document: Document.Parsed): YamlResult {
  if (isScalar(document.contents)) {
    return {
      ok: false,
      problems: ['the file holds a single value; it must begin with `providers:`'],
    };
  }
  try {
    return { ok: true, value: document.toJS() };
  } catch {
    // Two things are found only here: `<<` without a mapping, and aliases that multiply out of bounds.
    return {
      ok: false,
      problems: [
        'a merge key (<<) that names no mapping, or far too many aliases; write the values out',
      ],
    };
  }
}
