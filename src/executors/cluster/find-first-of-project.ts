import { defaultProject } from "../../contract/project.ts";
import { requireNamespace } from "../../kubernetes/namespaces.ts";
import type { KubernetesObject, Stored } from "../../kubernetes/resources.ts";
import { namespaceProject } from "../../resources/served-namespaces.ts";
import type { SyncContext } from "./sync-context.ts";

const projectChange = {
  project: defaultProject,
  action: "createProject",
  tokenId: null,
  tokenName: "namespace",
};

/**
 * Of resources with the same id the one that was created first, as the one that has a record, and
 * the project of its namespace, which is created where it is new. Others have a copy of its label.
 */
export async function findFirstOfProject<T extends KubernetesObject>(
  { records, namespaces }: SyncContext,
  resources: readonly Stored<T>[],
): Promise<{ resource: Stored<T>; project: string } | undefined> {
  const [first] = resources
    .flatMap((resource) => {
      const project = namespaceProject(namespaces, requireNamespace(resource));
      return project === undefined ? [] : [{ resource, project }];
    })
    .toSorted((one, other) => createdAt(one.resource) - createdAt(other.resource));
  if (first !== undefined && first.project !== defaultProject) {
    await records.projects.ensure(first.project, projectChange);
  }
  return first;
}

export function hasProject<T extends KubernetesObject>(
  { namespaces }: SyncContext,
  resources: readonly Stored<T>[],
): boolean {
  return resources.some(
    (resource) => namespaceProject(namespaces, requireNamespace(resource)) !== undefined,
  );
}

function createdAt({ metadata }: Stored<KubernetesObject>): number {
  return Date.parse(metadata.creationTimestamp);
}
