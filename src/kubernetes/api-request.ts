import { protobufContentType } from "./protobuf-responses.ts";
import type { KubernetesObject, ResourceType } from "./resources.ts";

export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "apply" | "delete";

/** One call to the API server. */
export interface ApiRequest {
  readonly verb: Verb;
  /** For instance `jobs`, `compressionjobs/status`, `pods/log`. */
  readonly resource: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** For messages, for instance `create jobs "a"`. */
  readonly action: string;
  /** In which form the answer is wanted. */
  readonly accept: string;
  readonly contentType?: string;
  readonly body?: string;
  /** Whether a second call does no harm when the answer to the first was lost. */
  readonly repeatable: boolean;
}

interface RequestFacts {
  readonly namespace: string;
  readonly name?: string | undefined;
  readonly subresource?: "status" | "log" | undefined;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: object;
  readonly repeatable?: boolean;
}

const httpMethods = {
  get: "GET",
  list: "GET",
  watch: "GET",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  apply: "PATCH",
  delete: "DELETE",
} as const;

const contentTypes: Partial<Record<Verb, string>> = {
  patch: "application/merge-patch+json",
  apply: "application/apply-patch+yaml",
};

export function apiRequest<T extends KubernetesObject>(
  verb: Verb,
  type: ResourceType<T>,
  { namespace, name, subresource, query = {}, body, repeatable = true }: RequestFacts,
): ApiRequest {
  const resource = subresource === undefined ? type.plural : `${type.plural}/${subresource}`;
  const segments = [
    type.apiVersion.includes("/") ? "apis" : "api",
    ...type.apiVersion.split("/"),
    ...(type.namespaced ? ["namespaces", namespace] : []),
    type.plural,
    ...(name === undefined ? [] : [name]),
    ...(subresource === undefined ? [] : [subresource]),
  ];
  return {
    verb,
    resource,
    method: httpMethods[verb],
    path: `/${segments.map(encodeURIComponent).join("/")}${queryString(query)}`,
    accept: acceptedType(verb, type),
    action: name === undefined ? `${verb} ${resource}` : `${verb} ${resource} "${name}"`,
    ...(body !== undefined && {
      contentType: contentTypes[verb] ?? "application/json",
      body: JSON.stringify(body),
    }),
    repeatable,
  };
}

function acceptedType(verb: Verb, { protobuf }: ResourceType<KubernetesObject>): string {
  if (protobuf === undefined || verb === "delete") return "application/json";
  return verb === "watch" ? `${protobufContentType};stream=watch` : protobufContentType;
}

function queryString(
  query: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? "" : `?${parameters.toString()}`;
}
