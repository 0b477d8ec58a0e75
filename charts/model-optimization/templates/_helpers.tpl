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

{{/* Not empty where replicas of the service share all that they keep. */}}
{{- define "model-optimization.hasSharedStorage" -}}
{{- if and .Values.service.postgres.existingSecret .Values.service.s3.bucket -}}
true
{{- end -}}
{{- end }}

{{/* Called with (list $ .Values.image). */}}
{{- define "model-optimization.image" -}}
{{- $root := first . -}}
{{- $image := last . -}}
{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end }}

{{- define "model-optimization.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
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

{{/* Called with (list $ .Values.service). */}}
{{- define "model-optimization.placement" -}}
{{- $root := first . -}}
{{- $component := last . -}}
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
  labels: {{- include "model-optimization.labels" . | nindent 4 }}
rules:
{{ $rules | trim | indent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "model-optimization.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
