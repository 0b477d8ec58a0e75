import { allNamespaces } from "../kubernetes/all-namespaces.ts";
import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import { KubernetesError } from "../kubernetes/kubernetes-error.ts";
import type { KubernetesObject, ResourceType } from "../kubernetes/resources.ts";
import { errorMessageWithCauses } from "../log/error-message.ts";
import type { Log } from "../log/json-log.ts";

interface WatchProblemOptions {
  readonly client: KubernetesClient;
  readonly type: ResourceType<KubernetesObject>;
  readonly log: Log;
}

/** Interval of log entries of the same problem. */
const repeatLogMs = 60_000;

/** The last error of a list or watch, logged with advice when it is new. */
export class WatchProblem {
  readonly #options: WatchProblemOptions;
  #message: string | undefined;
  #at = -Infinity;
  #loggedAt = -Infinity;

  constructor(options: WatchProblemOptions) {
    this.#options = options;
  }

  get message(): string | undefined {
    return this.#message;
  }

  get secondsSince(): number {
    return (performance.now() - this.#at) / 1_000;
  }

  report(error: unknown): void {
    const { client, type, log } = this.#options;
    const message = `${errorMessageWithCauses(error)}${errorAdvice(error, type, client)}`;
    this.#at = performance.now();
    if (message !== this.#message || this.#at - this.#loggedAt > repeatLogMs) {
      log("error", message);
      this.#loggedAt = this.#at;
    }
    this.#message = message;
  }
}

function errorAdvice(
  error: unknown,
  { kind, plural, apiVersion }: ResourceType<KubernetesObject>,
  { namespace }: KubernetesClient,
): string {
  const [group = ""] = apiVersion.includes("/") ? apiVersion.split("/") : [];
  const status = error instanceof KubernetesError ? error.status : undefined;
  if (status === 401) {
    return ". The credentials are not accepted: check the service account's token";
  }
  if (status === 403) {
    const rule = `apiGroups ["${group}"], resources ["${plural}"], verbs ["list", "watch"]`;
    const role = namespace === allNamespaces ? "ClusterRole" : `Role in namespace "${namespace}"`;
    return `. Grant the service account a ${role} with ${rule}`;
  }
  if (status === 404) {
    const definition = `CustomResourceDefinition ${plural}.${group}`;
    return `. The kind ${kind} is not installed: apply the ${definition}`;
  }
  return "";
}
