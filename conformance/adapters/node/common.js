'use strict';

// Three ways to fail. A Refusal ends it: a failure of the set-up (T5), and whatever a rule says must be refused.
class Refusal extends Error {}
// T4: this method is not the one that the file was encrypted with, and the next one is tried.
class DoesNotFit extends Error {}
// C7: an expression, or a key service, that this program does not have. It says so, and never guesses a value.
class Unsupported extends Error {}

// E7: Node's decoder skips what it does not know, so that the text is checked first. Line breaks are skipped, as
// OpenTofu does. Bits that the last digit does not need are ignored, since no rule for readers forbids them (W6).
function decodeBase64(text) {
  const digits = typeof text === 'string' ? text.replace(/[\r\n]/g, '') : null;
  if (digits === null || digits.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(digits)) throw new Refusal('not base64');
  return Buffer.from(digits, 'base64');
}

module.exports = { DoesNotFit, Refusal, Unsupported, decodeBase64 };
