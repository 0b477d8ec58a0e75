import { createServer } from "node:http";
import type { TestContext } from "node:test";
import { Provider } from "oidc-provider";
import type { SingleSignOnOptions } from "../../src/auth/single-sign-on.ts";
import { listenLocally } from "../support/listen-locally.ts";

/** Groups of people, by the name with which they sign in. */
type Groups = Readonly<Record<string, readonly string[]>>;

/** A certified OpenID Connect provider on this machine, which takes any password. */
export async function startLocalProvider(
  t: TestContext,
  { publicUrl, groups = {} }: { readonly publicUrl: string; readonly groups?: Groups },
): Promise<SingleSignOnOptions> {
  const server = createServer();
  const issuer = (await listenLocally(t, server)).replace("127.0.0.1", "localhost");
  const service = { client_id: "service", client_secret: "secret of the service" };
  const provider = new Provider(issuer, {
    clients: [{ ...service, redirect_uris: [`${publicUrl}/auth/callback`] }],
    claims: { openid: ["sub"], profile: ["name"], email: ["email"], groups: ["groups"] },
    scopes: ["openid", "profile", "email", "groups"],
    cookies: { keys: ["key of the provider's cookies"] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        name: `${id} <b>Lovelace</b>`,
        email: `${id}@example.com`,
        groups: [...(groups[id] ?? [])],
      }),
    }),
  });
  const respond = provider.callback();
  server.on("request", (request, response) => void respond(request, response));
  return {
    issuer,
    clientId: service.client_id,
    clientSecret: service.client_secret,
    scopes: "openid profile email groups",
    groupsClaim: "groups",
    publicUrl,
  };
}
