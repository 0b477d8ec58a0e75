import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../../../../src/kubernetes/kubernetes-client.ts";

interface JobIdentity {
  readonly name: string;
  readonly uid: string;
}

/** Knows of which CompressionJobs the work may have been begun, however old the caches are. For one leadership. */
export class StartedJobs {
  readonly #client: KubernetesClient;
  readonly #uids = new Map<string, string>();
  /** What was there when the leader first asked: earlier leaders may have begun it. */
  #fromEarlierLeaders: Promise<ReadonlySet<string>> | undefined;

  constructor(client: KubernetesClient) {
    this.#client = client;
  }

  /** Comes before the work begins. */
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
