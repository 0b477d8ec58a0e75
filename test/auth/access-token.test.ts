import assert from "node:assert/strict";
import test from "node:test";
import { isWellFormedToken, generateAccessToken } from "../../src/auth/access-token.ts";

test("mintAccessToken() makes tokens of mos_, 30 random characters and a checksum of 6", () => {
  const tokens = new Set(Array.from({ length: 100 }, generateAccessToken));
  assert.equal(tokens.size, 100);
  for (const token of tokens) {
    assert.match(token, /^mos_[0-9A-Za-z]{36}$/);
    assert.ok(isWellFormedToken(token), token);
  }
});

test("isWellFormedToken() takes the CRC-32 of the random characters in base 62", () => {
  assert.ok(isWellFormedToken(`mos_${"0".repeat(30)}2C8GjS`));
});

test("isWellFormedToken() refuses a token with one wrong character, wherever it is", () => {
  const token = generateAccessToken();
  for (let i = 4; i < token.length; i++) {
    const wrong = token.slice(0, i) + (token[i] === "a" ? "b" : "a") + token.slice(i + 1);
    assert.equal(isWellFormedToken(wrong), false, wrong);
  }
});
