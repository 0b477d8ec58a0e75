import assert from "node:assert/strict";
import test from "node:test";
import { listSecretFiles } from "../../src/service/settings/read-credentials.ts";
import { settings } from "../../src/service/settings/settings.ts";

const publicFiles = ["MOS_TARGETS_FILE", "MOS_TRUST_POLICY_FILE"];

test("contained workers read no file of a setting that is a secret", () => {
  const files = Object.keys(settings.shape).filter((name) => /_FILE$|KUBECONFIG$/.test(name));
  const secret = files.filter((name) => !publicFiles.includes(name));
  const namedAfterTheirSettings = Object.fromEntries(files.map((name) => [name, name]));
  assert.deepEqual(listSecretFiles(namedAfterTheirSettings).toSorted(), secret.toSorted());
});

test("contained workers read no private key of a certificate", () => {
  assert.deepEqual(listSecretFiles({ MOS_TLS_DIR: "/etc/tls" }), ["/etc/tls/tls.key"]);
});
