import assert from "node:assert/strict";
import test from "node:test";
import { settings } from "../../src/service/settings/settings.ts";
import { parseEnvironment } from "../../src/settings/parse-environment.ts";

function readProxies(list: string) {
  return parseEnvironment(settings, { MOS_TRUSTED_PROXIES: list }).MOS_TRUSTED_PROXIES;
}

test("MOS_TRUSTED_PROXIES trusts only the addresses of its networks", () => {
  const isTrusted = readProxies("10.0.0.0/8, 192.0.2.7,2001:db8::/32");
  const addresses = ["10.1.2.3", "11.0.0.1", "192.0.2.7", "192.0.2.8", "2001:db8::1", "::1", ""];
  assert.deepEqual(addresses.filter(isTrusted), ["10.1.2.3", "192.0.2.7", "2001:db8::1"]);
});

test("MOS_TRUSTED_PROXIES trusts nobody by default", () => {
  assert.equal(parseEnvironment(settings, {}).MOS_TRUSTED_PROXIES("127.0.0.1"), false);
});

for (const list of [
  "10.0.0.0/33",
  "proxy.example",
  "10.0.0.0/8/8",
  "2001:db8::/129",
  "10.0.0.0/x",
]) {
  test(`MOS_TRUSTED_PROXIES cannot be "${list}"`, () => {
    assert.throws(
      () => readProxies(list),
      /MOS_TRUSTED_PROXIES is ".*" and must be a list of addresses and networks/,
    );
  });
}
