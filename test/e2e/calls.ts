import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { z } from "zod";
import {
  operatorClusterPermissions,
  operatorOwnPermissions,
  operatorPermissions,
  type Permission,
  serviceClusterPermissions,
  servicePermissions,
} from "../../src/resources/permissions.ts";
import { createStepRunner } from "./create-step-runner.ts";
import { type Installation, namespace, release } from "./installation.ts";

/** Permissions of the operator that are needed without a call, or in cases that did not occur. */
const rareOperatorCalls = [
  // Where the API server checks owner references.
  "update compressionjobs/finalizers",
  "update batches/finalizers",
  // A worker Job of the same name exists.
  "get jobs",
  // A worker Job does not end, or is not synced.
  "patch jobs",
  // Milestones that come again.
  "get events",
  "patch events",
  // Namespaces are deleted.
  "get namespaces",
  // Another operator leads.
  "watch leases",
  // The release is uninstalled.
  "delete leases",
];

/** The same of the service. */
const rareServiceCalls = [
  // Where the API server checks owner references.
  "update batches/finalizers",
  // What is created exists already, or its cache lags behind.
  "get compressionjobs",
  "get batches",
  "get pods",
  // A namespace was deleted with its jobs.
  "get namespaces",
  // A batch is cancelled over REST.
  "patch batches",
];

const components = {
  operator: {
    permissions: [...operatorPermissions, ...operatorOwnPermissions, ...operatorClusterPermissions],
    rare: rareOperatorCalls,
  },
  service: {
    permissions: [...servicePermissions, ...serviceClusterPermissions],
    rare: rareServiceCalls,
  },
};

/** A call as the API server's audit log has it; the object is absent for paths such as `/version`. */
const auditedCall = z.object({
  user: z.object({ username: z.string() }),
  verb: z.string(),
  objectRef: z
    .object({
      resource: z.string(),
      subresource: z.string().optional(),
      name: z.string().optional(),
      namespace: z.string().optional(),
    })
    .optional(),
  annotations: z.object({ "authorization.k8s.io/decision": z.enum(["allow", "forbid"]) }),
});

/** What operator and service asked of the API server since they were installed. */
export async function testCalls(group: TestContext, installation: Installation): Promise<void> {
  const step = createStepRunner(group, installation);
  const calls = await readAuditLog(installation);

  for (const [component, { permissions, rare }] of Object.entries(components)) {
    const title = `no call of the ${component} is refused, and its roles allow none without a use`;
    await step(title, async () => {
      const username = `system:serviceaccount:${namespace}:${release}-${component}`;
      const own = calls.filter(({ user }) => user.username === username);
      const refused = new Map(
        own.filter(isRefused).map((call) => [describePlace(call), call] as const),
      );
      // An API server that has just started refuses every call until it has read the roles.
      const allowed = own.filter((call) => !isRefused(call)).map(describePlace);
      for (const place of allowed) refused.delete(place);
      for (const [place, call] of refused) {
        const decision = await readDecision(installation, call).catch(String);
        assert.equal(decision, "yes", place);
      }
      const made = new Set(own.map(describeCall));
      assert.deepEqual(
        listAllowed(permissions).filter((call) => !made.has(call) && !rare.includes(call)),
        [],
      );
    });
  }
}

type AuditedCall = z.infer<typeof auditedCall>;

async function readAuditLog({ cluster }: Installation): Promise<AuditedCall[]> {
  const text = await readFile(join(cluster.folder, "audit.log"), "utf8");
  const lines = text.trimEnd().split("\n");
  return lines.map((line) => auditedCall.parse(JSON.parse(line)));
}

function isRefused({ annotations }: AuditedCall): boolean {
  return annotations["authorization.k8s.io/decision"] === "forbid";
}

/** What the API server says now of a call: `yes` or `no`. */
async function readDecision(
  { cluster }: Installation,
  { verb, user, objectRef }: AuditedCall,
): Promise<string> {
  const { resource = "", subresource = "", name, namespace: place } = objectRef ?? {};
  const object = name === undefined ? resource : `${resource}/${name}`;
  const where = place === undefined ? "--all-namespaces" : `--namespace=${place}`;
  const flags = [`--subresource=${subresource}`, `--as=${user.username}`, where];
  return (await cluster.kubectl(["auth", "can-i", verb, object, ...flags])).trim();
}

function describePlace(call: AuditedCall): string {
  return `${describeCall(call)} in ${call.objectRef?.namespace ?? "the cluster"}`;
}

function describeCall({ verb, objectRef }: AuditedCall): string {
  return [verb, [objectRef?.resource, objectRef?.subresource].filter(Boolean).join("/")].join(" ");
}

function listAllowed(permissions: readonly Permission[]): string[] {
  return permissions.flatMap(({ resources, verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
  );
}
