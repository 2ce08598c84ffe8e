{{/*
The values that all templates read: those of the user, with the defaults of handlers, and
with the keys of Akri's own chart translated.
*/}}
{{- define "akri.values" -}}
{{- $values := deepCopy (omit .Values "global") }}
{{- $defaults := .Files.Get "files/handler.yaml" | fromYaml }}
{{- range $key, $handler := $values.handlers }}
{{- $_ := set $values.handlers $key (mergeOverwrite (deepCopy $defaults) $handler) }}
{{- end }}
{{- include "akri.gone" . }}
{{- $old := .Files.Get "files/akri.yaml" | fromYaml }}
{{- $akri := mergeOverwrite (deepCopy $old) (deepCopy (omit .Values "global")) }}
{{- include "akri.oldAgent" (list $values $akri) }}
{{- include "akri.oldDeployments" (list $values $akri $old) }}
{{- include "akri.oldHandlers" (list $values $akri $old) }}
{{- range $key := list "debugEcho" "udev" "onvif" "opcua" "custom" }}
{{- $configuration := (get $akri $key).configuration }}
{{- if $configuration.enabled }}
{{- $spec := include "akri.oldSpec" (list $key $configuration $akri.imagePullSecrets) | fromYaml }}
{{- $_ := set $values "configurations" (append $values.configurations (dict "name" $configuration.name "spec" $spec)) }}
{{- end }}
{{- end }}
{{- toYaml $values }}
{{- end }}
