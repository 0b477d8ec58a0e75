import assert from "node:assert/strict";
import { createSignInLink } from "../../src/auth/sign-in.ts";
import type { TestApp } from "./test-app.ts";

/** How a browser marks requests of the service's own pages. */
export const ownPage = { "sec-fetch-site": "same-origin" };

/** A link's secret. */
export function makeTestLink({ records, now }: Pick<TestApp, "records" | "now">): Promise<string> {
  return createSignInLink(records, "test", now());
}

/** Signs a person in. @returns the headers of the person's further requests */
export async function signInTestPerson(app: TestApp): Promise<{ cookie: string }> {
  const body = { secret: await makeTestLink(app) };
  const answer = await app.ask("POST /v1/sessions", { token: null, body, headers: ownPage });
  assert.equal(answer.status, 201);
  const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
  return { cookie };
}
