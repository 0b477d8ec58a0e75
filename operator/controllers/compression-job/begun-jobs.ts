import { compressionJobs } from "../../../src/kubernetes/custom-resources.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";

interface Identity {
  readonly name: string;
  readonly uid: string;
}

/** Knows of which CompressionJobs the work may have been begun, however old the caches are. For one leadership. */
export class BegunJobs {
  readonly #client: KubernetesClient;
  readonly #uids = new Map<string, string>();
  /** What was there when the leader first asked: earlier leaders may have begun it. */
  #inherited: Promise<ReadonlySet<string>> | undefined;

  constructor(client: KubernetesClient) {
    this.#client = client;
  }

  /** Comes before the work begins. */
  note({ name, uid }: Identity): void {
    this.#uids.set(name, uid);
  }

  forget(name: string): void {
    this.#uids.delete(name);
  }

  async mayInclude({ name, uid }: Identity): Promise<boolean> {
    this.#inherited ??= this.#list();
    return this.#uids.get(name) === uid || (await this.#inherited).has(uid);
  }

  async #list(): Promise<ReadonlySet<string>> {
    try {
      const uids = new Set<string>();
      for await (const { items } of this.#client.list(compressionJobs)) {
        for (const { metadata } of items) uids.add(metadata.uid);
      }
      return uids;
    } catch (error) {
      this.#inherited = undefined;
      throw error;
    }
  }
}
