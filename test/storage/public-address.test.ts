import assert from "node:assert/strict";
import { type LookupAddress, lookup } from "node:dns";
import { test } from "node:test";
import { createPublicLookup, isPublicAddress } from "../../src/storage/public-address.ts";

test("isPublicAddress() distinguishes the public internet from everything else", () => {
  for (const address of [
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.0.1",
    "2606:4700::1111",
    "2a00:1450::1",
  ]) {
    assert.equal(isPublicAddress(address), true, address);
  }
  const refused = [
    "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.168.1.1 198.18.0.1",
    "224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::ffff:8.8.8.8 ::ffff:127.0.0.1 ::7f00:1 64:ff9b::7f00:1",
    "fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 2002:7f00:1:: 2001::1 not-an-address",
  ];
  for (const address of refused.join(" ").split(" "))
    assert.equal(isPublicAddress(address), false, address);
});

function lookupThatFinds(...addresses: LookupAddress[]): typeof lookup {
  return Object.assign((...call: unknown[]) => {
    const callback = call.at(-1);
    if (typeof callback === "function") callback(null, addresses);
  }, lookup);
}

test("publicLookup() gives the connection public addresses only", async () => {
  const find = createPublicLookup(
    lookupThatFinds({ address: "10.0.0.1", family: 4 }, { address: "8.8.8.8", family: 4 }),
  );
  const found = await new Promise((resolve) =>
    find("host", { all: true }, (_, addresses) => resolve(addresses)),
  );
  assert.deepEqual(found, [{ address: "8.8.8.8", family: 4 }]);
});

test("publicLookup() refuses a host that resolves to private addresses", async () => {
  const find = createPublicLookup(lookupThatFinds({ address: "10.0.0.1", family: 4 }));
  const error = await new Promise((resolve) => find("host", {}, (failure) => resolve(failure)));
  assert.equal(Object(error).code, "model_source_refused");
});
