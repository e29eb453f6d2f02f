import { paramError } from './errors.ts';

/** What a request carries before validation: form values are strings (an array when repeated), JSON keeps its types. */
export type RawValue = string | number | boolean | readonly (string | number | boolean)[];
export type RawParams = Record<string, RawValue>;
export type Value = string | number | boolean;
export type Params = Record<string, Value>;

/** One parameter in the manner of PVE::JSONSchema. */
export interface Property {
  type: 'string' | 'integer' | 'number' | 'boolean';
  optional?: boolean;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  enum?: readonly string[];
  pattern?: RegExp;
  /** Returns a text when the value does not fit; shown as `invalid format - <text>\n`. */
  format?: (value: string) => string | null;
  /** `-list` formats: repeated keys are joined with a comma. */
  list?: boolean;
}
export type Schema = Readonly<Record<string, Property>>;

/**
 * Checks and converts parameters as PVE::JSONSchema::validate does; all texts are captured (04-clone-bad-params,
 * 06-resize-bad-size, 12-bool-yes …). Throws a 400 with one text per parameter.
 */
export function validate(
  raw: RawParams,
  schema: Schema,
  lookup?: (key: string) => Property | undefined,
): Params {
  const errors: Record<string, string> = {};
  const params: Params = {};
  for (const [key, value] of Object.entries(raw)) {
    const property = schema[key] ?? lookup?.(key);
    if (property === undefined) {
      errors[key] =
        'property is not defined in schema and the schema does not allow additional properties';
      continue;
    }
    const outcome = checkValue(value, property);
    if ('error' in outcome) errors[key] = outcome.error;
    else params[key] = outcome.value;
  }
  for (const [key, property] of Object.entries(schema)) {
    if (!(key in raw) && property.optional !== true) {
      errors[key] = 'property is missing and it is not optional';
    }
  }
  if (Object.keys(errors).length > 0) throw paramError(errors);
  return params;
}

type Outcome = { value: Value } | { error: string };

function checkValue(value: RawValue, property: Property): Outcome {
  if (typeof value === 'object') {
    if (property.list === true) return { value: value.join(',') };
    return { error: `type check ('${property.type}') failed - got ARRAY` };
  }
  switch (property.type) {
    case 'boolean':
      return checkBoolean(value);
    case 'integer':
      return checkNumber(value, property, /^[+-]?\d+$/);
    case 'number':
      return checkNumber(value, property, /^[+-]?\d+(\.\d+)?$/);
    case 'string':
      return checkString(String(value), property);
    default:
      return { error: 'unknown type' };
  }
}

function checkBoolean(value: Value): Outcome {
  if (value === true || value === 1 || value === '1') return { value: true };
  if (value === false || value === 0 || value === '0') return { value: false };
  return { error: `type check ('boolean') failed - got '${value}'` };
}

function checkNumber(value: Value, property: Property, shape: RegExp): Outcome {
  const text = String(value);
  if (!shape.test(text)) return { error: `type check ('${property.type}') failed - got '${text}'` };
  if (property.format !== undefined) {
    const complaint = property.format(text);
    if (complaint !== null) return { error: `invalid format - ${complaint}\n` };
  }
  const number = Number(text);
  if (property.minimum !== undefined && number < property.minimum) {
    return { error: `value must have a minimum value of ${property.minimum}` };
  }
  if (property.maximum !== undefined && number > property.maximum) {
    return { error: `value must have a maximum value of ${property.maximum}` };
  }
  return { value: number };
}

function checkString(text: string, property: Property): Outcome {
  if (property.maxLength !== undefined && Array.from(text).length > property.maxLength) {
    return { error: `value may only be ${property.maxLength} characters long` };
  }
  if (property.enum !== undefined && !property.enum.includes(text)) {
    return {
      error: `value '${text}' does not have a value in the enumeration '${property.enum.join(', ')}'`,
    };
  }
  if (property.pattern !== undefined && !property.pattern.test(text)) {
    return { error: 'value does not match the regex pattern' };
  }
  if (property.format !== undefined) {
    const complaint = property.format(text);
    if (complaint !== null) return { error: `invalid format - ${complaint}\n` };
  }
  return { value: text };
}

const DNS_LABEL = '[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?';
const DNS_NAME = new RegExp(`^${DNS_LABEL}(\\.${DNS_LABEL})*$`);

export const formats = {
  vmid: (value: string): string | null =>
    /^[1-9]\d{2,8}$/.test(value) ? null : 'value does not look like a valid VM ID',
  dnsName: (value: string): string | null =>
    DNS_NAME.test(value) ? null : 'value does not look like a valid DNS name',
  node: (value: string): string | null =>
    /^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$/.test(value)
      ? null
      : 'value does not look like a valid node name',
  storage: (value: string): string | null =>
    /^[a-z][a-z0-9\-_.]*[a-z0-9]$/i.test(value)
      ? null
      : `storage ID '${value}' contains illegal characters`,
  tags: (value: string): string | null =>
    value
      .split(/[,;\s]+/)
      .filter((tag) => tag !== '')
      .every((tag) => /^[a-z0-9_][a-z0-9_\-+.]*$/i.test(tag))
      ? null
      : 'invalid characters in tag',
};

export const common = {
  node: { type: 'string', format: formats.node },
  vmid: { type: 'integer', format: formats.vmid },
  storage: { type: 'string', format: formats.storage },
  optionalStorage: { type: 'string', format: formats.storage, optional: true },
  optionalString: { type: 'string', optional: true },
  optionalBoolean: { type: 'boolean', optional: true },
  optionalInteger: { type: 'integer', optional: true, minimum: 0 },
  digest: { type: 'string', optional: true, maxLength: 40 },
} satisfies Record<string, Property>;
