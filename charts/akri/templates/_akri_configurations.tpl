{{/* The Configuration of a key of Akri's chart: akri.oldSpec (list KEY CONFIGURATION PULLSECRETS). */}}
{{- define "akri.oldSpec" -}}
{{- $key := index . 0 }}
{{- $c := index . 1 }}
{{- $handler := dict "name" $key "discoveryDetails" (include "akri.oldDetails" (list $key $c)) }}
{{- if eq $key "custom" }}
{{- $name := required "custom.configuration.discoveryHandlerName: required: the name of the discovery handler" $c.discoveryHandlerName }}
{{- $handler = dict "name" $name "discoveryDetails" (toString $c.discoveryDetails) }}
{{- end }}
{{- with $c.discoveryProperties }}
{{- range . }}
{{- if hasKey . "value" }}
{{- $_ := set . "value" (toString .value) }}
{{- end }}
{{- end }}
{{- $_ := set $handler "discoveryProperties" . }}
{{- end }}
{{- $properties := dict }}
{{- range $name, $value := $c.brokerProperties }}
{{- $_ := set $properties $name (toString $value) }}
{{- end }}
{{- $spec := dict "discoveryHandler" $handler "capacity" (int $c.capacity) "brokerProperties" $properties }}
{{- $pod := $c.brokerPod.image.repository }}
{{- $job := $c.brokerJob.image.repository }}
{{- if $pod }}
{{- $_ := set $spec "brokerSpec" (dict "brokerPodSpec" (include "akri.oldPod" (append . "brokerPod") | fromYaml)) }}
{{- else if $job }}
{{- $template := include "akri.oldPod" (append . "brokerJob") | fromYaml }}
{{- $_ := set $template "restartPolicy" $c.brokerJob.restartPolicy }}
{{- $counts := dict "backoffLimit" (int $c.brokerJob.backoffLimit) "parallelism" (int $c.brokerJob.parallelism) }}
{{- $_ := set $counts "completions" (int $c.brokerJob.completions) }}
{{- $_ := set $spec "brokerSpec" (dict "brokerJobSpec" (merge (dict "template" (dict "spec" $template)) $counts)) }}
{{- end }}
{{- if or $pod (and $job (eq $key "debugEcho")) }}
{{- if $c.createInstanceServices }}
{{- $_ := set $spec "instanceServiceSpec" (include "akri.oldService" $c.instanceService | fromYaml) }}
{{- end }}
{{- if $c.createConfigurationService }}
{{- $service := $c.configurationService }}
{{- if has $key (list "debugEcho" "custom") }}
{{- /* As in Akri's chart, whose brokers listen at the port of the Service. */}}
{{- $service = mergeOverwrite (deepCopy $service) (dict "targetPort" $service.port) }}
{{- end }}
{{- $_ := set $spec "configurationServiceSpec" (include "akri.oldService" $service | fromYaml) }}
{{- end }}
{{- end }}
{{- toYaml $spec }}
{{- end }}

{{/* What the handler gets: akri.oldDetails (list KEY CONFIGURATION). */}}
{{- define "akri.oldDetails" -}}
{{- $key := index . 0 }}
{{- $c := index . 1 }}
{{- $details := $c.discoveryDetails }}
{{- if and (eq $key "udev") (not $details.udevRules) }}
{{- fail "udev.configuration.discoveryDetails.udevRules: at least one rule is required, for example --set 'udev.configuration.discoveryDetails.udevRules[0]=KERNEL==\"video[0-9]*\"'" }}
{{- else if eq $key "opcua" }}
{{- $urls := dict "discoveryUrls" $details.discoveryUrls }}
{{- $details = dict "opcuaDiscoveryMethod" (dict "standard" $urls) "applicationNames" $details.applicationNames }}
{{- end }}
{{- if ne $key "custom" }}
{{- toYaml $details }}
{{- end }}
{{- end }}

{{/*
The Pod of a broker: akri.oldPod (list KEY CONFIGURATION PULLSECRETS BROKER), with the key of the broker. The tag and the pull
policy are those of Akri's chart, which takes some of them from another key than one would expect.
*/}}
{{- define "akri.oldPod" -}}
{{- $key := index . 0 }}
{{- $c := index . 1 }}
{{- $secrets := index . 2 }}
{{- $job := eq (index . 3) "brokerJob" }}
{{- $broker := get $c (index . 3) }}
{{- $r := $broker.resources }}
{{- $tag := ternary $c.brokerPod.image.tag $broker.image.tag (and $job (ne $key "udev")) }}
{{- $ofImage := or (eq $key "udev") (and (not $job) (has $key (list "onvif" "opcua"))) }}
containers:
- name: {{ $c.name }}-broker
  image: {{ printf "%s:%s" $broker.image.repository (toString $tag) | quote }}
  {{- with ternary $broker.image.pullPolicy $c.pullPolicy $ofImage }}
  imagePullPolicy: {{ . }}
  {{- end }}
  {{- with $broker.command }}
  command:
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $broker.env }}
  env:
  {{- range $name, $value := . }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- end }}
  {{- with $broker.envFrom }}
  envFrom:
  {{- range .secretRef }}
  - secretRef: {name: {{ . | quote }}}
  {{- end }}
  {{- range .configMapRef }}
  - configMapRef: {name: {{ . | quote }}}
  {{- end }}
  {{- end }}
  {{- $privileged := and (eq $key "udev") (not $job) }}
  {{- with $broker.securityContext | default (ternary (dict "privileged" true) dict $privileged) }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  resources:
    requests: {"{{ "{{PLACEHOLDER}}" }}": "1", memory: {{ $r.memoryRequest | quote }}, cpu: {{ $r.cpuRequest | quote }}}
    limits: {"{{ "{{PLACEHOLDER}}" }}": "1", memory: {{ $r.memoryLimit | quote }}, cpu: {{ $r.cpuLimit | quote }}}
  {{- $mounts := $broker.volumeMounts }}
  {{- $volumes := $broker.volumes }}
  {{- if and $c.mountCertificates (not $job) }}
  {{- $mounts = append $mounts (dict "name" "credentials" "mountPath" "/etc/opcua-certs/client-pki" "readOnly" false) }}
  {{- $volumes = append $volumes (include "akri.oldOPCUACredentials" . | fromYaml) }}
  {{- end }}
  {{- with $mounts }}
  volumeMounts:
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $volumes }}
volumes:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with $secrets }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- define "akri.oldOPCUACredentials" -}}
name: credentials
secret:
  secretName: opcua-broker-credentials
  items:
  - {key: client_certificate, path: own/certs/AkriBroker.der}
  - {key: client_key, path: own/private/AkriBroker.pfx}
  - {key: ca_certificate, path: trusted/certs/SomeCA.der}
  - {key: ca_crl, path: trusted/crl/SomeCA.crl}
{{- end }}

{{/* A Service. Debug echo and custom call the name of its port name, the others portName. */}}
{{- define "akri.oldService" -}}
type: {{ .type }}
ports:
- name: {{ default .name .portName }}
  port: {{ .port }}
  targetPort: {{ .targetPort }}
  protocol: {{ .protocol }}
{{- end }}
