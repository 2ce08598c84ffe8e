{{/* Labels of all objects. Labels of Pods are others, so that an upgrade that changes nothing else restarts nothing. */}}
{{- define "akri.labels" -}}
app.kubernetes.io/part-of: akri
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The reference of an image: akri.image (list ROOT VALUES NAME). */}}
{{- define "akri.image" -}}
{{- $root := index . 0 }}
{{- $image := (index . 1).image }}
{{- $name := index . 2 }}
{{- $repository := get $image.repositories $name }}
{{- printf "%s/%s:%s" (trimSuffix "/" $image.registry) $repository (default $root.Chart.AppVersion $image.tag) }}
{{- with get $image.digests $name }}@{{ . }}{{ end }}
{{- end }}

{{/* A handler's name in the names of objects: debug-echo for debugEcho. */}}
{{- define "akri.handlerObject" -}}
akri-{{ kebabcase . }}-discovery
{{- end }}
