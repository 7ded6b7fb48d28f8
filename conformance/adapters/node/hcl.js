'use strict';
// C1: HCL's native syntax and its JSON syntax, as far as settings need them. Both give bodies: { json, args, blocks }.
// Values are strings, numbers, booleans, null, arrays, Maps, and References. C7: whatever else is Unsupported.
const { Refusal, Unsupported } = require('./common');
const { JsonNumber, JsonObject, parse } = require('./json');

// A reference to a key provider or a method. template says that it is written "${…}", which C4 and C5 tell apart.
class Reference {
  constructor(path, template) { Object.assign(this, { path, template }); }
}

function reference(path, template) {
  if (!/^(key_provider|method)\.[\w-]+\.[\w-]+$/.test(path)) throw new Unsupported(`the expression ${path} is not evaluated`);
  return new Reference(path, template);
}

const PIECE = /([$%])\1\{|\$\{\s*([\w.-]+)\s*\}|([$%]\{)|\\(?:([nrt"\\])|u([0-9a-fA-F]{4})|U(00(?:0.|10)[0-9a-fA-F]{4}))|([^])/yu;

// template reads a template from pos to the end of the text or, if quoted, to a quotation mark. Only in quotes, a
// backslash is special.
function template(text, pos = 0, quoted = false) {
  const parts = [];
  while (quoted ? text[pos] !== '"' : pos < text.length) {
    PIECE.lastIndex = pos;
    const [piece, sign, path, begin, escape, u4, u8, other] = PIECE.exec(text) ?? ['', '', '', '', '', '', '', '\n'];
    if (quoted && (other === '\\' || other === '\n')) throw new Refusal('settings: a string with a bad escape, or without an end');
    if (begin) throw new Unsupported('templates are not evaluated');
    if (!quoted && piece[0] === '\\') parts.push('\\');
    else if (path) parts.push(reference(path, true));
    else if (sign) parts.push(`${sign}{`); // C7
    else if (escape) parts.push(JSON.parse(`"\\${escape}"`));
    else parts.push(other ?? String.fromCodePoint(parseInt(u4 ?? u8, 16)));
    pos += !quoted && piece[0] === '\\' ? 1 : piece.length;
  }
  const refers = parts.some((part) => part instanceof Reference);
  if (refers && parts.length > 1) throw new Unsupported('templates are not evaluated');
  return { value: refers ? parts[0] : parts.join('').normalize('NFC'), end: pos + 1 }; // C8
}

function nativeBody(text) {
  let pos = 0;
  const match = (regexp) => {
    regexp.lastIndex = pos;
    const found = regexp.exec(text);
    if (found) pos += found[0].length;
    return found;
  };
  const fail = (what) => { throw new Refusal(`settings, line ${text.slice(0, pos).split('\n').length}: ${what} expected`); };
  const spaces = () => match(/(?:[ \t\r]|\/\*[^]*?\*\/)*/y);
  const lines = () => match(/(?:\s|#.*|\/\/.*|\/\*[^]*?\*\/)*/y);
  const eat = (character) => { spaces(); return text[pos] === character && ++pos > 0; };
  const name = () => match(/[A-Za-z_][\w-]*/y)?.[0];
  const quoted = () => {
    const { value, end } = template(text, pos + 1, true);
    pos = end;
    return value;
  };
  // Elements up to the end, each followed by a separator or the end.
  const list = (end, separator, element) => {
    for (lines(); !eat(end); lines()) {
      element();
      spaces();
      if (!match(separator)) fail(`a separator or ${end ?? 'the end'}`);
    }
  };
  const primary = () => {
    spaces();
    if (text[pos] === '"') return quoted();
    if (eat('[')) {
      const values = [];
      list(']', /(?:\s|#.*|\/\/.*)*(?:,|(?=\]))/y, () => values.push(expression()));
      return values;
    }
    if (eat('{')) {
      const object = new Map();
      list('}', /,|(?=[\n}#/])/y, () => {
        const key = text[pos] === '"' ? quoted() : name() ?? fail('a name');
        if (object.has(key) || !(eat('=') || eat(':'))) fail('= after another name');
        object.set(key, expression());
      });
      return object;
    }
    const number = match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (number) return Number(number[0]);
    const path = match(/[A-Za-z_][\w-]*(?:\.[\w-]+)*/y)?.[0];
    if (!path) return /[-!(<]/.test(text[pos]) ? unsupported() : fail('a value');
    const constants = { null: null, true: true, false: false };
    return Object.hasOwn(constants, path) ? constants[path] : reference(path, false);
  };
  const unsupported = () => { throw new Unsupported('functions, operators and heredocs are not evaluated'); };
  const expression = () => {
    const value = primary();
    spaces();
    if (match(/(?!\/\/)(?:[-+*/%<>&|?(.[]|[!=]=)/y)) unsupported();
    return value;
  };

  const body = (end) => {
    const result = { json: false, args: new Map(), blocks: [] };
    list(end, /(?=[}#\n]|\/\/)|$/y, () => {
      const type = name() ?? fail('a name');
      if (eat('=')) {
        if (result.args.has(type)) fail('another name');
        result.args.set(type, expression());
        return;
      }
      const labels = [];
      while (!eat('{')) labels.push(text[pos] === '"' ? quoted() : name() ?? fail('{'));
      result.blocks.push({ type, labels, body: body('}') });
    });
    return result;
  };
  return body(undefined); // text[pos] is undefined at the end
}

// In JSON, only the schema tells arguments from blocks, whose labels are nested objects; arrays hold several blocks.
function jsonBody(object, schema) {
  const result = { json: true, args: new Map(), blocks: [] };
  const addBlocks = (type, count, blockSchema, value, labels) => {
    if (value === null) return;
    if (Array.isArray(value)) value.forEach((one) => addBlocks(type, count, blockSchema, one, labels));
    else if (!(value instanceof JsonObject)) throw new Refusal(`settings: ${type} must be an object`);
    else if (labels.length === count) result.blocks.push({ type, labels, body: jsonBody(value, blockSchema) });
    else value.entries.forEach(([label, inner]) => addBlocks(type, count, blockSchema, inner, [...labels, label]));
  };
  for (const [name, value] of object.entries) {
    if (name === '//') continue; // a comment, in HCL's JSON
    if (Object.hasOwn(schema.blocks, name)) addBlocks(name, ...schema.blocks[name], value, []);
    else if (result.args.has(name)) throw new Refusal(`settings: ${name} is there twice`);
    else result.args.set(name, jsonValue(value));
  }
  return result;
}

function jsonValue(value) {
  if (typeof value === 'string') return template(value).value;
  if (value instanceof JsonNumber) return Number(value.text);
  if (Array.isArray(value)) return value.map(jsonValue);
  if (value instanceof JsonObject) return new Map(value.entries.map(([name, member]) => [jsonValue(name), jsonValue(member)]));
  return value;
}

// C3: what the schema does not have is refused. args is null if they depend on the type of the block.
function check(body, schema) {
  for (const name of body.args.keys()) {
    if (schema.args && !schema.args.includes(name)) throw new Refusal(`settings: unknown argument ${name}`);
  }
  for (const { type, labels, body: inner } of body.blocks) {
    if (!Object.hasOwn(schema.blocks, type)) throw new Refusal(`settings: unknown block ${type}`);
    const [count, blockSchema] = schema.blocks[type];
    if (labels.length !== count) throw new Refusal(`settings: ${type} must have ${count} labels`);
    check(inner, blockSchema);
  }
  return body;
}

// C1: the first character decides about the syntax.
function readBody(text, schema) {
  return check(text.startsWith('{') ? jsonBody(parse(text), schema) : nativeBody(text), schema);
}

module.exports = { Reference, readBody };
