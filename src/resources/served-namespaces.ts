import { defaultProject } from "../contract/project.ts";
import { allNamespaces } from "../kubernetes/object-key.ts";
import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";

/** The namespaces whose resources an installation works on. */
export interface ServedNamespaces {
  /** That of the installation itself, whose resources are those of the project `default`. */
  readonly own: string;
  /** The others, each the project of its name. */
  readonly others: readonly string[] | "all";
}

/** A client for each list and watch that together see all that is served. */
export function scopeClients(
  client: KubernetesClient,
  { own, others }: ServedNamespaces,
): KubernetesClient[] {
  const scopes = others === "all" ? [allNamespaces] : new Set([own, ...others]);
  return Array.from(scopes, (scope) => client.inNamespace(scope));
}

/**
 * The project of what is created in a namespace; undefined where the namespace is not served. That
 * of the name `default` is only where it is the installation's own: its project is another's.
 */
export function namespaceProject(
  { own, others }: ServedNamespaces,
  namespace: string,
): string | undefined {
  if (namespace === own) return defaultProject;
  if (namespace === defaultProject) return undefined;
  return others === "all" || others.includes(namespace) ? namespace : undefined;
}

/** Where a project's jobs are worked on: the namespace of its name, or the installation's own. */
export function projectNamespace({ own, others }: ServedNamespaces, project: string): string {
  const hasOwn = project !== defaultProject && (others === "all" || others.includes(project));
  return hasOwn ? project : own;
}
