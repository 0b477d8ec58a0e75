import assert from "node:assert/strict";
import test from "node:test";
import { readSessionSecret, sessionCookie } from "../../src/auth/session-cookie.ts";

const secret = "a".repeat(43);

function formatCookie(publicUrl: string | undefined, address: string): string {
  return sessionCookie({ publicUrl }, new Request(address), secret, 60);
}

test("a cookie is only for TLS where people reach the service by it", () => {
  assert.equal(
    formatCookie("https://mos.example", "http://10.0.0.1:8080/v1/sessions"),
    `__Host-mos-session=${secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age=60; Secure`,
  );
});

test("a cookie is only for TLS where the service speaks it, without a public address", () => {
  assert.match(formatCookie(undefined, "https://10.0.0.1:8443/v1/sessions"), /^__Host-.*Secure$/);
});

test("services of one host do not share a session", () => {
  const [cookie = ""] = formatCookie(undefined, "http://localhost:8080/v1/sessions").split(";");
  const read = (port: number) =>
    readSessionSecret({}, new Request(`http://localhost:${port}/v1/jobs`, { headers: { cookie } }));
  assert.equal(read(8080), secret);
  assert.equal(read(9090), undefined);
});
