import { allNamespaces } from "./object-key.ts";
import { protobufContentType } from "./protobuf/responses.ts";
import type { KubernetesObject, ResourceType } from "./resources.ts";

export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";

/** One call to the API server. */
export interface ApiRequest {
  readonly verb: Verb;
  /** For instance `jobs`, `compressionjobs/status`, `pods/log`. */
  readonly resource: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** For messages, for instance `create jobs "a"`. */
  readonly action: string;
  /** Content type of the response. */
  readonly accept: string;
  readonly contentType?: string | undefined;
  readonly body?: string | undefined;
  /** Whether a second call does no harm when the response to the first was lost. */
  readonly repeatable: boolean;
}

interface RequestFacts {
  readonly namespace: string;
  readonly name?: string | undefined;
  readonly subresource?: "status" | "scale" | "log" | undefined;
  readonly query?: Query;
  readonly body?: object;
  readonly repeatable?: boolean;
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

const httpMethods = {
  get: "GET",
  list: "GET",
  watch: "GET",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
} as const;

export function apiRequest<T extends KubernetesObject>(
  verb: Verb,
  type: ResourceType<T>,
  facts: RequestFacts,
): ApiRequest {
  const { name, subresource, body, repeatable = true } = facts;
  const resource = subresource === undefined ? type.plural : `${type.plural}/${subresource}`;
  return {
    verb,
    resource,
    method: httpMethods[verb],
    path: requestPath(type, facts),
    accept: acceptedType(verb, type),
    action: name === undefined ? `${verb} ${resource}` : `${verb} ${resource} "${name}"`,
    contentType: body && (verb === "patch" ? "application/merge-patch+json" : "application/json"),
    body: body && JSON.stringify(body),
    repeatable,
  };
}

function requestPath(
  { apiVersion, namespaced, plural }: ResourceType<KubernetesObject>,
  { namespace, name, subresource, query = {} }: RequestFacts,
): string {
  const segments = [
    apiVersion.includes("/") ? "apis" : "api",
    ...apiVersion.split("/"),
    ...(namespaced && namespace !== allNamespaces ? ["namespaces", namespace] : []),
    plural,
    name,
    subresource,
  ].filter((segment) => segment !== undefined);
  return `/${segments.map(encodeURIComponent).join("/")}${queryString(query)}`;
}

function acceptedType(verb: Verb, { protobuf }: ResourceType<KubernetesObject>): string {
  if (protobuf === undefined || verb === "delete") return "application/json";
  return verb === "watch" ? `${protobufContentType};stream=watch` : protobufContentType;
}

function queryString(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? "" : `?${parameters.toString()}`;
}
