{{/*
Fails where another release serves a namespace of this one: both would write the same statuses. The
RoleBindings of its operator say what it serves. Those of a release that is gone have no account.
*/}}
{{- define "model-optimization.refuseSharedNamespaces" -}}
{{- $api := "rbac.authorization.k8s.io/v1" -}}
{{- $served := prepend (include "model-optimization.otherNamespaces" . | fromJsonArray) .Release.Namespace -}}
{{- $bindings := (lookup $api "ClusterRoleBinding" "" "").items | default list -}}
{{- range include "model-optimization.servesAll" . | empty | ternary $served (list "") -}}
{{- $bindings = concat $bindings ((lookup $api "RoleBinding" . "").items | default list) -}}
{{- end -}}
{{- range $binding := $bindings -}}
{{- $labels := $binding.metadata.labels | default dict -}}
{{- $isOperator := and (eq (get $labels "app.kubernetes.io/name") $.Chart.Name) (eq (get $labels "app.kubernetes.io/component") "operator") -}}
{{- if and $isOperator (or $binding.metadata.namespace (hasKey $labels "modeloptimization.dev/all-namespaces")) -}}
{{- $release := get $labels "app.kubernetes.io/instance" -}}
{{- range $account := $binding.subjects -}}
{{- $isOwn := and (eq $release $.Release.Name) (eq $account.namespace $.Release.Namespace) -}}
{{- if and (not $isOwn) (lookup "v1" "ServiceAccount" $account.namespace $account.name) -}}
{{- $shared := $binding.metadata.namespace | empty | ternary "Every namespace" (printf "Namespace %q" $binding.metadata.namespace) -}}
{{- fail (printf "%s is served by the release %q of namespace %q: only one release may serve a namespace" $shared $release $account.namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
