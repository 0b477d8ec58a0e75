import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../../../../src/kubernetes/kubernetes-client.ts";
import { allNamespaces, objectKey } from "../../../../src/kubernetes/object-key.ts";

interface JobIdentity {
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
}

/** CompressionJobs whose work may have started, independent of the caches. For one leadership. */
export class StartedJobs {
  readonly #scopes: readonly KubernetesClient[];
  readonly #uids = new Map<string, string>();
  /**
   * UIDs that existed at the first question about a scope: earlier leaders may have started their
   * work. One scope that cannot be read holds no other up.
   */
  readonly #fromEarlierLeaders = new Map<KubernetesClient, Promise<ReadonlySet<string>>>();

  constructor(scopes: readonly KubernetesClient[]) {
    this.#scopes = scopes;
  }

  /** Comes before the work starts. */
  add(job: JobIdentity): void {
    this.#uids.set(objectKey(job), job.uid);
  }

  forget(key: string): void {
    this.#uids.delete(key);
  }

  async mayInclude(job: JobIdentity): Promise<boolean> {
    const { uid } = job;
    const scope = this.#findScope(job);
    const known = this.#fromEarlierLeaders.get(scope) ?? this.#list(scope);
    this.#fromEarlierLeaders.set(scope, known);
    return this.#uids.get(objectKey(job)) === uid || (await known).has(uid);
  }

  #findScope({ namespace, name }: JobIdentity): KubernetesClient {
    const scope = this.#scopes.find((each) => [allNamespaces, namespace].includes(each.namespace));
    if (scope === undefined) throw new TypeError(`No scope has the namespace of "${name}"`);
    return scope;
  }

  async #list(scope: KubernetesClient): Promise<ReadonlySet<string>> {
    try {
      const uids = new Set<string>();
      for await (const { items } of scope.list(compressionJobs)) {
        for (const { metadata } of items) uids.add(metadata.uid);
      }
      return uids;
    } catch (error) {
      this.#fromEarlierLeaders.delete(scope);
      throw error;
    }
  }
}
