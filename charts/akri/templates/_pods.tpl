{{/* Labels and annotations of Pods: akri.podMetadata (dict "name" NAME "values" VALUES). */}}
{{- define "akri.podMetadata" -}}
labels:
  app.kubernetes.io/name: {{ .name }}
  app.kubernetes.io/part-of: akri
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where Pods run: akri.scheduling (dict "image" IMAGE "name" NAME "values" VALUES). */}}
{{- define "akri.scheduling" -}}
{{- with .image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
{{- $selector := dict "labelSelector" (dict "matchLabels" (dict "app.kubernetes.io/name" $.name)) }}
- {{- toYaml (merge (deepCopy .) $selector) | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* What no container of Akri may do, overridden by the argument. */}}
{{- define "akri.securityContext" -}}
{{- $default := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) }}
{{- $context := mergeOverwrite $default (deepCopy (default dict .)) }}
{{- if $context.privileged }}
{{- /* The API server refuses privileged containers that must not escalate. */}}
{{- $_ := unset $context "allowPrivilegeEscalation" }}
{{- end }}
{{- toYaml $context }}
{{- end }}

{{/* The annotations of an object that exists during an event of the release: akri.hook (list EVENT WEIGHT). */}}
{{- define "akri.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
