import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../../../../src/kubernetes/kubernetes-client.ts";
import { listUnlessDeleted } from "../../../../src/kubernetes/namespaces.ts";
import { objectKey } from "../../../../src/kubernetes/object-key.ts";

interface JobIdentity {
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
}

/** CompressionJobs whose work may have started, independent of the caches. For one leadership. */
export class StartedJobs {
  readonly #scopes: readonly KubernetesClient[];
  readonly #uids = new Map<string, string>();
  /** UIDs that existed at the first question: earlier leaders may have started their work. */
  #fromEarlierLeaders: Promise<ReadonlySet<string>> | undefined;

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
    this.#fromEarlierLeaders ??= this.#list();
    const { uid } = job;
    return this.#uids.get(objectKey(job)) === uid || (await this.#fromEarlierLeaders).has(uid);
  }

  async #list(): Promise<ReadonlySet<string>> {
    try {
      const uids = new Set<string>();
      for (const scope of this.#scopes) {
        for await (const { items } of listUnlessDeleted(scope, compressionJobs)) {
          for (const { metadata } of items) uids.add(metadata.uid);
        }
      }
      return uids;
    } catch (error) {
      this.#fromEarlierLeaders = undefined;
      throw error;
    }
  }
}
