{{- define "model-optimization.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* Labels that select the pods of a component: called with (list $ "service"). */}}
{{- define "model-optimization.selector" -}}
{{- $root := first . -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{- define "model-optimization.labels" -}}
{{- $root := first . -}}
{{ include "model-optimization.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels of what lies outside of the release's namespace and is of no use without it. */}}
{{- define "model-optimization.clusterLabels" -}}
{{ include "model-optimization.labels" . }}
modeloptimization.dev/release-namespace: {{ (first .).Release.Namespace }}
{{- end }}

{{/*
The release's namespace as the owner, so that what lies outside of it is deleted with it. Nobody knows the uid of a namespace
that Helm is about to make, or without the cluster.
*/}}
{{- define "model-optimization.owner" -}}
{{- with lookup "v1" "Namespace" "" .Release.Namespace -}}
ownerReferences:
  - apiVersion: v1
    kind: Namespace
    name: {{ .metadata.name }}
    uid: {{ .metadata.uid }}
{{- end -}}
{{- end }}

{{/* Not empty where replicas of the service share all that they keep. */}}
{{- define "model-optimization.hasSharedStorage" -}}
{{- if and .Values.service.postgres.existingSecret .Values.service.s3.existingSecret -}}
true
{{- end -}}
{{- end }}

{{/* Called with (list $ .Values.image). */}}
{{- define "model-optimization.image" -}}
{{- $root := first . -}}
{{- $image := last . -}}
{{- if hasPrefix "@" $image.tag -}}
{{ $image.repository }}{{ $image.tag }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "model-optimization.podSecurityContext" -}}
runAsNonRoot: true
{{- if not .Values.openshift }}
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "model-optimization.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Called with the name of the port. A start may take minutes, a migration of the database for instance. */}}
{{- define "model-optimization.probes" -}}
startupProbe:
  httpGet:
    path: /healthz
    port: {{ . }}
  periodSeconds: 1
  failureThreshold: 300
livenessProbe:
  httpGet:
    path: /healthz
    port: {{ . }}
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet:
    path: /readyz
    port: {{ . }}
  timeoutSeconds: 5
{{- end }}

{{/* Called with (list $ "service"). */}}
{{- define "model-optimization.placement" -}}
{{- $root := first . -}}
{{- $name := last . -}}
{{- $component := index $root.Values $name -}}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $component.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $component.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $component.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $component.topologySpreadConstraints }}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "model-optimization.selector" (list $root $name) | fromYaml)) }}
topologySpreadConstraints:
{{- range . }}
  - {{- toYaml (merge (deepCopy .) (hasKey . "labelSelector" | ternary dict $selector)) | nindent 4 }}
{{- end }}
{{- end }}
{{- with $component.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* Labels of the pods of a component: called with (list $ "service"), or (list $ "backup" "service") where it has that one's. */}}
{{- define "model-optimization.podLabels" -}}
{{- $root := first . -}}
{{ merge (include "model-optimization.labels" (list $root (index . 1)) | fromYaml) (index $root.Values (last .)).podLabels | toYaml }}
{{- end }}

{{/* The account of a component: called with (list $ "service"). */}}
{{- define "model-optimization.serviceAccount" -}}
{{- $root := first . -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "model-optimization.fullname" $root }}-{{ last . }}
  labels: {{- include "model-optimization.labels" . | nindent 4 }}
automountServiceAccountToken: false
{{- end }}

{{/* Name of the Secret with the service's certificate; empty where it answers by http. */}}
{{- define "model-optimization.tlsSecret" -}}
{{- with .Values.service.tls -}}
{{- .existingSecret | default (.certManager.issuerRef | empty | ternary "" (printf "%s-service-tls" (include "model-optimization.fullname" $))) -}}
{{- end -}}
{{- end }}

{{/* Name of the Secret by which the first administrator signs in; empty if there is none. */}}
{{- define "model-optimization.signInSecret" -}}
{{- with .Values.service.firstSignIn -}}
{{- if .existingSecret -}}
{{ .existingSecret }}
{{- else if .enabled -}}
{{ include "model-optimization.fullname" $ }}-first-sign-in
{{- end -}}
{{- end -}}
{{- end }}

{{/* Not empty where every namespace is served. */}}
{{- define "model-optimization.servesAll" -}}
{{- if kindIs "string" .Values.namespaces -}}
true
{{- end -}}
{{- end }}

{{/* The namespaces that are served by name besides the release's own, as JSON. */}}
{{- define "model-optimization.otherNamespaces" -}}
{{- $named := kindIs "slice" .Values.namespaces | ternary .Values.namespaces list -}}
{{- $others := without $named .Release.Namespace | uniq -}}
{{- if has "default" $others -}}
{{- fail "namespaces: default cannot be served by a release elsewhere: the project of that name is the release's own namespace" -}}
{{- end -}}
{{- toJson $others -}}
{{- end }}

{{/* Fails where one of them does not exist. The namespace "default" always does, where there is a cluster. */}}
{{- define "model-optimization.refuseAbsentNamespaces" -}}
{{- range include "model-optimization.otherNamespaces" . | fromJsonArray -}}
{{- if and (lookup "v1" "Namespace" "" "default") (not (lookup "v1" "Namespace" "" .)) -}}
{{- fail (printf "namespaces: %s does not exist: kubectl create namespace %s" . .) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The environment variable by which the operator and the service know them. */}}
{{- define "model-optimization.namespacesEnv" -}}
{{- $others := include "model-optimization.otherNamespaces" . | fromJsonArray -}}
name: MOS_NAMESPACES
value: {{ include "model-optimization.servesAll" . | empty | ternary (join "," $others) "*" | quote }}
{{- end }}

{{/* Selects the namespaces that are served. */}}
{{- define "model-optimization.namespaceSelector" -}}
{{- if include "model-optimization.servesAll" . -}}
{}
{{- else -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: In
    values: {{ prepend (include "model-optimization.otherNamespaces" . | fromJsonArray) .Release.Namespace | toYaml | nindent 6 }}
{{- end -}}
{{- end }}

{{/* Where pods of the release reach the service. */}}
{{- define "model-optimization.serviceUrl" -}}
{{ include "model-optimization.serviceOrigin" . }}:{{ .Values.service.port }}
{{- end }}

{{/* Where workers reach it. */}}
{{- define "model-optimization.workerUrl" -}}
{{ include "model-optimization.serviceOrigin" . }}:{{ .Values.service.workerPort | default .Values.service.port }}
{{- end }}

{{- define "model-optimization.serviceOrigin" -}}
{{- $scheme := include "model-optimization.tlsSecret" . | empty | ternary "http" "https" -}}
{{- $host := printf "%s-service" (include "model-optimization.fullname" .) -}}
{{- if .Values.namespaces -}}
{{- $host = printf "%s.%s.svc" $host .Release.Namespace -}}
{{- end -}}
{{ $scheme }}://{{ $host }}
{{- end }}

{{/* Not empty where workers know the service by the authority in its Secret. */}}
{{- define "model-optimization.hasOwnAuthority" -}}
{{- if and (include "model-optimization.tlsSecret" .) .Values.service.tls.ca -}}
true
{{- end -}}
{{- end }}

{{/* The volume with only that authority's certificate. */}}
{{- define "model-optimization.authorityVolume" -}}
name: service-ca
secret:
  secretName: {{ include "model-optimization.tlsSecret" . }}
  items:
    - key: ca.crt
      path: ca.crt
{{- end }}

{{/* What a component may do in the cluster: called with (list $ "service"). */}}
{{- define "model-optimization.clusterAccess" -}}
{{- $root := first . }}
{{- $account := printf "%s-%s" (include "model-optimization.fullname" $root) (last .) }}
{{- $name := printf "%s-%s-cluster" $root.Release.Namespace $account }}
{{- $rules := $root.Files.Get (printf "permissions/%s-cluster.yaml" (last .)) }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels: {{- include "model-optimization.clusterLabels" . | nindent 4 }}
  {{- include "model-optimization.owner" $root | nindent 2 }}
rules:
{{ $rules | trim | indent 2 }}
{{- if include "model-optimization.servesAll" $root }}
{{ $root.Files.Get (printf "permissions/%s.yaml" (last .)) | trim | indent 2 }}
{{- end }}
{{- if and (eq (last .) "operator") (include "model-optimization.otherNamespaces" $root | fromJsonArray) }}
{{ $root.Files.Get "permissions/operator-release.yaml" | trim | indent 2 }}
{{- end }}
{{- if and (eq (last .) "service") $root.Values.service.serviceAccountCallers }}
{{ $root.Files.Get "permissions/service-callers.yaml" | trim | indent 2 }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "model-optimization.clusterLabels" . | nindent 4 }}
    {{- if include "model-optimization.servesAll" $root }}
    modeloptimization.dev/all-namespaces: "true"
    {{- end }}
  {{- include "model-optimization.owner" $root | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}

{{/* What a component may do in the other namespaces: called with (list $ "service"). */}}
{{- define "model-optimization.otherAccess" -}}
{{- $root := first . }}
{{- $labels := include "model-optimization.labels" . }}
{{- $name := printf "%s-%s" (include "model-optimization.fullname" $root) (last .) }}
{{- $rules := $root.Files.Get (printf "permissions/%s.yaml" (last .)) }}
{{- $others := include "model-optimization.otherNamespaces" $root | fromJsonArray }}
{{- range $namespace := $others }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- $labels | nindent 4 }}
rules:
{{ $rules | trim | indent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- end }}

{{/* A policy's name in the cluster: called with (list $ "workers"). */}}
{{- define "model-optimization.policyName" -}}
{{- $root := first . -}}
{{ $root.Release.Namespace }}-{{ include "model-optimization.fullname" $root }}-{{ last . }}
{{- end }}

{{/* Binds a policy in the namespaces of a selector: called with (list $selector $ "workers"). */}}
{{- define "model-optimization.policyBinding" -}}
{{- $policy := rest . }}
{{- $name := include "model-optimization.policyName" $policy }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels: {{- include "model-optimization.clusterLabels" (list (first $policy) "admission") | nindent 4 }}
  {{- include "model-optimization.owner" (first $policy) | nindent 2 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
  matchResources:
    namespaceSelector: {{- first . | nindent 6 }}
{{- end }}

{{/* Selects the release's own namespace. */}}
{{- define "model-optimization.ownNamespaceSelector" -}}
matchLabels:
  kubernetes.io/metadata.name: {{ .Release.Namespace }}
{{- end }}

{{/* CEL: whether who asks may install the chart, or nothing is refused to. */}}
{{- define "model-optimization.isInstaller" -}}
(
  request.userInfo.groups.exists(group, group in ['system:nodes', 'system:masters']) ||
  authorizer.group('rbac.authorization.k8s.io').resource('clusterroles').check('create').allowed()
)
{{- end }}

{{/* The claim of the service's volume; empty where it has none. */}}
{{- define "model-optimization.dataClaim" -}}
{{- with .Values.service.persistence -}}
{{- if and .enabled (not (include "model-optimization.hasSharedStorage" $)) -}}
{{- .existingClaim | default (printf "%s-service" (include "model-optimization.fullname" $)) -}}
{{- end -}}
{{- end -}}
{{- end }}
