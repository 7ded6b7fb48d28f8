'use strict';
// JSON.parse does not tell 1 from 1.0 and rounds large numbers (S2), and it can neither stop after a value (K43) nor
// show two members of the same name, which are two blocks in settings.
const { Refusal } = require('./common');

const MAX_DEPTH = 1000; // L2

class JsonNumber {
  constructor(text) { this.text = text; }
  get isInteger() { return /^-?\d+$/.test(this.text); }
}

class JsonObject {
  entries = [];
  // E12: of several members of the same name, the last one counts, as in OpenTofu.
  get(name) { return this.entries.findLast(([key]) => key === name)?.[1]; }
  has(name) { return this.entries.some(([key]) => key === name); }
}

// parse reads one JSON text. With first, it reads the first value, and ignores what follows it.
function parse(text, { first = false } = {}) {
  let pos = 0;
  const fail = () => { throw new Refusal(`not JSON at character ${pos}`); };
  const match = (regexp) => {
    regexp.lastIndex = pos;
    const found = regexp.exec(text)?.[0] ?? null;
    pos += found?.length ?? 0;
    return found;
  };
  const space = () => match(/[ \t\r\n]*/y);
  const eat = (character) => { space(); return text[pos] === character && ++pos > 0; };
  const string = () => {
    space();
    if (text[pos] !== '"') fail();
    const start = pos++;
    while (text[pos] !== '"') {
      if (pos >= text.length) fail();
      pos += text[pos] === '\\' ? 2 : 1;
    }
    try { return JSON.parse(text.slice(start, ++pos)); } catch { return fail(); }
  };
  const list = (end, element) => {
    if (eat(end)) return;
    do element(); while (eat(','));
    if (!eat(end)) fail();
  };
  const value = (depth) => {
    if (depth > MAX_DEPTH) fail();
    space();
    if (text[pos] === '"') return string();
    if (eat('{')) {
      const object = new JsonObject();
      list('}', () => { const name = string(); if (!eat(':')) fail(); object.entries.push([name, value(depth + 1)]); });
      return object;
    }
    if (eat('[')) {
      const array = [];
      list(']', () => array.push(value(depth + 1)));
      return array;
    }
    const number = match(/-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y);
    if (number !== null) return new JsonNumber(number);
    return JSON.parse(match(/true|false|null/y) ?? fail());
  };
  const result = value(0);
  space();
  if (!first && pos < text.length) fail(); // E1
  return result;
}

// stringify writes compact JSON as programs get it: sorted members, escapes, and numbers of double precision (K41, K45).
function stringify(value) {
  if (value instanceof JsonNumber) {
    const number = Number(value.text);
    if (!Number.isFinite(number)) throw new Refusal('a number that is too large');
    return Object.is(number, -0) ? '-0' : String(number);
  }
  if (Array.isArray(value)) return `[${value.map(stringify)}]`;
  if (!(value instanceof JsonObject)) {
    const text = JSON.stringify(value?.toWellFormed?.() ?? value);
    return text.replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  }
  const members = [...new Map(value.entries)].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `{${members.map(([name, member]) => `${stringify(name)}:${stringify(member)}`)}}`;
}

// parseObject gives the object that the bytes are, or null if they are something else. E1: bytes that are not UTF-8 are
// refused, and a byte order mark is not removed, so that it is refused as well.
function parseObject(bytes) {
  try {
    const value = parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    return value instanceof JsonObject ? value : null;
  } catch (error) {
    if (error instanceof Refusal || error.code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return null;
    throw error;
  }
}

module.exports = { JsonNumber, JsonObject, parse, parseObject, stringify };
