import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../../../../src/kubernetes/kubernetes-client.ts";

interface JobIdentity {
  readonly name: string;
  readonly uid: string;
}

/** CompressionJobs whose work may have started, independent of the caches. For one leadership. */
export class StartedJobs {
  readonly #client: KubernetesClient;
  readonly #uids = new Map<string, string>();
  /** UIDs that existed at the first question: earlier leaders may have started their work. */
  #fromEarlierLeaders: Promise<ReadonlySet<string>> | undefined;

  constructor(client: KubernetesClient) {
    this.#client = client;
  }

  /** Comes before the work starts. */
  add({ name, uid }: JobIdentity): void {
    this.#uids.set(name, uid);
  }

  forget(name: string): void {
    this.#uids.delete(name);
  }

  async mayInclude({ name, uid }: JobIdentity): Promise<boolean> {
    this.#fromEarlierLeaders ??= this.#list();
    return this.#uids.get(name) === uid || (await this.#fromEarlierLeaders).has(uid);
  }

  async #list(): Promise<ReadonlySet<string>> {
    try {
      const uids = new Set<string>();
      for await (const { items } of this.#client.list(compressionJobs)) {
        for (const { metadata } of items) uids.add(metadata.uid);
      }
      return uids;
    } catch (error) {
      this.#fromEarlierLeaders = undefined;
      throw error;
    }
  }
}
