import { watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createSecureContext, type Server } from "node:tls";
import type { Log } from "../../log/json-log.ts";
import { StartError } from "../../settings/parse-environment.ts";

interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** Certificate and key are written one after the other. */
const settleMs = 100;

/** A certificate with its private key, and the files that may have newer ones. */
export interface TlsCertificate {
  readonly pair: CertificatePair;
  readonly files: CertificateFiles;
  readonly log: Log;
}

/**
 * The service's certificate; undefined where the settings name none.
 * @throws StartError
 */
export async function readTlsCertificate(
  directory: string | undefined,
  log: Log,
): Promise<TlsCertificate | undefined> {
  if (directory === undefined) return undefined;
  const files = tlsFiles(directory);
  try {
    return { pair: await readPair(files), files, log };
  } catch (cause) {
    const message = `The certificate "${files.certificate}" cannot be used: ${String(cause)}`;
    throw new StartError(message, { cause });
  }
}

/** The files of a folder as a Secret of Kubernetes has them. */
export function tlsFiles(directory: string): CertificateFiles {
  return { certificate: join(directory, "tls.crt"), key: join(directory, "tls.key") };
}

/**
 * Reads both files again where they do not fit together, for as long as they change: they may have
 * been replaced after the first was read.
 * @throws Error where a file cannot be read, or the key is another certificate's
 */
async function readPair(files: CertificateFiles): Promise<CertificatePair> {
  for (let pair = await readPairFiles(files); ;) {
    try {
      createSecureContext(pair);
      return pair;
    } catch (error) {
      await delay(settleMs);
      const next = await readPairFiles(files);
      if (next.cert === pair.cert && next.key === pair.key) throw error;
      pair = next;
    }
  }
}

async function readPairFiles({ certificate, key }: CertificateFiles): Promise<CertificatePair> {
  return { cert: await readFile(certificate, "utf8"), key: await readFile(key, "utf8") };
}

/**
 * Has new connections get the files' newer certificate, such as a renewed Secret has. The present
 * one stays while they do not fit together.
 */
export function followCertificate(
  { files, pair, log }: TlsCertificate,
  server: Pick<Server, "setSecureContext">,
): Disposable {
  let current = pair.cert;
  const refresh = async () => {
    try {
      const next = await readPair(files);
      if (next.cert === current) return;
      server.setSecureContext(next);
      current = next.cert;
      log("info", "The certificate was renewed", { file: files.certificate });
    } catch (error) {
      log("warn", "The new certificate cannot be used", { file: files.certificate, error });
    }
  };
  let timer: NodeJS.Timeout | undefined;
  let refreshed = Promise.resolve();
  // A Secret's files change by the rename of a folder beside them.
  const watcher = watch(dirname(files.certificate), () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      refreshed = refreshed.then(refresh);
    }, settleMs);
  });
  return {
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      watcher.close();
    },
  };
}
