import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Writes a certificate of `localhost` that signs itself, and its key. */
export async function createCertificate(files: {
  key: string;
  certificate: string;
}): Promise<void> {
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const output = ["-keyout", files.key, "-out", files.certificate];
  await run("openssl", ["req", "-x509", "-days", "1", ...curve, ...subject, ...output]);
}
