import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT } from "jose";

/** When tests of tokens begin by the service's clock. */
const start = Date.parse("2026-01-01T00:00:00Z") / 1000;

export const audience = "https://mos.example";

/** What GitHub says of a push to the main branch of a repository, as far as it matters here. */
export const pushToMain = {
  sub: "repo:acme/models:ref:refs/heads/main",
  repository: "acme/models",
  repository_id: "123",
  repository_owner_id: "45",
  event_name: "push",
  ref: "refs/heads/main",
  ref_type: "branch",
  sha: "5".repeat(40),
  run_id: "987",
  run_attempt: "1",
};

interface SignOptions {
  /** Claims laid over those of a push to the main branch; undefined takes one away. */
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, string>>;
  /** Another key than the issuer's present one. */
  readonly key?: CryptoKey | Uint8Array;
}

/** An issuer of identity tokens on this machine, with real keys. */
export interface LocalIssuer {
  readonly url: string;
  /** Where its keys are. */
  readonly jwksUri: string;
  readonly sign: (options?: SignOptions) => Promise<string>;
  /** The issuer's present public key, as PEM. */
  readonly publicKey: () => Promise<string>;
  /** Signs by a new key from now on; the old ones are no longer given out. */
  readonly rotate: () => Promise<void>;
  /** How often the keys were asked for. */
  readonly asked: () => number;
  /** Whether the keys are given out at all. */
  answering: boolean;
}

interface Key {
  readonly id: string;
  readonly pair: Awaited<ReturnType<typeof makePair>>;
}

/** @param name the issuer's URL in its tokens; by default the one where it is */
export async function startLocalIssuer(t: TestContext, name?: string): Promise<LocalIssuer> {
  let keys = 0;
  let asked = 0;
  let tokens = 0;
  const makeKey = async (): Promise<Key> => ({ id: `key-${++keys}`, pair: await makePair() });
  let key = await makeKey();
  const server = createServer((request, response) => {
    asked++;
    if (!issuer.answering) response.writeHead(500).end();
    else if (request.url !== "/.well-known/jwks") response.writeHead(404).end();
    else void exportPublicKey(key).then((jwk) => response.end(JSON.stringify({ keys: [jwk] })));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const address = `http://127.0.0.1:${port}`;
  const url = name ?? address;
  const issuer: LocalIssuer = {
    url,
    jwksUri: `${address}/.well-known/jwks`,
    answering: true,
    asked: () => asked,
    publicKey: () => exportSPKI(key.pair.publicKey),
    rotate: async () => void (key = await makeKey()),
    async sign({ claims = {}, header = {}, key: other = key.pair.privateKey } = {}) {
      const times = { iat: start, nbf: start, exp: start + 300 };
      const payload = {
        ...pushToMain,
        iss: url,
        aud: audience,
        jti: `token-${++tokens}`,
        ...times,
        ...claims,
      };
      return new SignJWT(payload)
        .setProtectedHeader({ alg: "RS256", kid: key.id, ...header })
        .sign(other);
    },
  };
  return issuer;
}

export function makePair(algorithm = "RS256") {
  return generateKeyPair(algorithm, { extractable: true });
}

async function exportPublicKey({ id, pair }: Key): Promise<JWK> {
  return { ...(await exportJWK(pair.publicKey)), kid: id, alg: "RS256", use: "sig" };
}
