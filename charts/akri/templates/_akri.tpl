{{/* Translates the keys of Akri's own chart, which files/akri.yaml has with their defaults. */}}

{{/* Fails if keys are set that have no meaning here, or a tag is in a repository. */}}
{{- define "akri.gone" -}}
{{- $root := . }}
{{- $old := .Files.Get "files/akri.yaml" | fromYaml }}
{{- $gone := list }}
{{- range $key := $old.gone }}
{{- $value := $root.Values }}
{{- range splitList "." $key }}
{{- $value = ternary (get (default dict $value) .) nil (kindIs "map" $value) }}
{{- end }}
{{- if $value }}
{{- $gone = append $gone $key }}
{{- end }}
{{- end }}
{{- range $key := list "debugEcho" "udev" "onvif" "opcua" "custom" "prometheus" "webhookConfiguration" }}
{{- $gone = concat $gone (include "akri.unknown" (list $key (get $root.Values $key) (get $old $key)) | fromYamlArray) }}
{{- end }}
{{- $gone = concat $gone (include "akri.unknown" (list "agent.host" .Values.agent.host $old.agent.host) | fromYamlArray) }}
{{- with $gone }}
{{- fail (printf "%s: not keys of this chart. If they are keys of Akri's chart, docs/migrate-from-akri.md#keys-of-akris-chart says what to write instead" (join ", " .)) }}
{{- end }}
{{- $refused := list }}
{{- range $key := list "debugEcho" "udev" "onvif" "opcua" "custom" }}
{{- range $path := list "configuration.brokerPod" "configuration.brokerJob" "discovery" }}
{{- $value := get $root.Values $key }}
{{- range splitList "." (printf "%s.image.repository" $path) }}
{{- $value = ternary (get (default dict $value) .) nil (kindIs "map" $value) }}
{{- end }}
{{- if and (or (eq $key "custom") (ne $path "discovery")) (regexMatch ":[^/]*$" (default "" $value)) }}
{{- $refused = append $refused (printf "%s.%s.image.repository: it has a tag or a digest: write the tag as image.tag next to it" $key $path) }}
{{- end }}
{{- end }}
{{- end }}
{{- with $refused }}
{{- fail (join "\n" .) }}
{{- end }}
{{- end }}

{{/* The paths of values that are not known, as a YAML list: akri.unknown (list PATH VALUES KNOWN). Maps that are known to be empty may have any keys. */}}
{{- define "akri.unknown" -}}
{{- $path := index . 0 }}
{{- $known := index . 2 }}
{{- range $key, $value := default dict (index . 1) }}
{{- $next := get $known $key }}
{{- if and $value (not (hasKey $known $key)) }}
- {{ $path }}.{{ $key }}
{{- else if and $next (kindIs "map" $next) (kindIs "map" $value) }}
{{- include "akri.unknown" (list (printf "%s.%s" $path $key) $value $next) }}
{{- end }}
{{- end }}
{{- end }}

{{/* What applies to all Pods, and the agents' keys: akri.oldAgent (list VALUES AKRI). */}}
{{- define "akri.oldAgent" -}}
{{- $values := index . 0 }}
{{- $akri := index . 1 }}
{{- $_ := set $values.image "pullSecrets" (concat $values.image.pullSecrets $akri.imagePullSecrets | uniq) }}
{{- if $akri.prometheus.enabled }}
{{- $_ := set $values.metrics.podMonitor "enabled" true }}
{{- $_ := set $values.metrics "enabled" true }}
{{- end }}
{{- if ne (int $akri.prometheus.port) 8080 }}
{{- range list $values.controller $values.webhook $values.agent }}
{{- $_ := set . "metricsPort" $akri.prometheus.port }}
{{- end }}
{{- end }}
{{- $host := $akri.agent.host }}
{{- $default := dict "rootDir" "/var/lib/kubelet" "devicePluginsDir" "/var/lib/kubelet/device-plugins" "handlersDir" "/var/lib/akri" }}
{{- if ne $host.discoveryHandlers $default.handlersDir }}
{{- $_ := set $values.agent "handlersDir" $host.discoveryHandlers }}
{{- end }}
{{- if ne $host.kubeletDevicePlugins $default.devicePluginsDir }}
{{- $_ := set $values.kubelet "devicePluginsDir" $host.kubeletDevicePlugins }}
{{- end }}
{{- if and (eq $akri.kubernetesDistro "microk8s") (eq $values.kubelet.rootDir $default.rootDir) }}
{{- $_ := set $values.kubelet "rootDir" "/var/snap/microk8s/common/var/lib/kubelet" }}
{{- end }}
{{- if ne $host.kubeletPodResources (printf "%s/pod-resources" $default.rootDir) }}
{{- if ne (base $host.kubeletPodResources) "pod-resources" }}
{{- fail "agent.host.kubeletPodResources: it is always the directory pod-resources in the kubelet's root directory: use kubelet.rootDir" }}
{{- end }}
{{- $_ := set $values.kubelet "rootDir" (dir $host.kubeletPodResources) }}
{{- end }}
{{- with $host.udev }}
{{- $_ := set $values.handlers.udev "udevDir" . }}
{{- end }}
{{- end }}

{{/* Where Pods run and their resources: akri.oldDeployments (list VALUES AKRI OLD). */}}
{{- define "akri.oldDeployments" -}}
{{- $values := index . 0 }}
{{- $akri := index . 1 }}
{{- $old := index . 2 }}
{{- $controlPlane := "node-role.kubernetes.io/control-plane" }}
{{- range $new, $key := dict "agent" "agent" "controller" "controller" "webhook" "webhookConfiguration" }}
{{- $component := get $values $new }}
{{- $source := get $akri $key }}
{{- include "akri.oldPods" (list $component $source (get $old $key)) }}
{{- if and $source.tolerations (eq $key "webhookConfiguration") }}
{{- $_ := set $component "tolerations" (concat $component.tolerations $source.tolerations) }}
{{- end }}
{{- if $source.onlyOnControlPlane }}
{{- $_ := set $component "nodeSelector" (merge (dict $controlPlane "") $component.nodeSelector) }}
{{- end }}
{{- /* Akri's default, which is not the default here: only if it is said. */}}
{{- if or $source.onlyOnControlPlane (dig $key "allowOnControlPlane" false (omit $values "handlers")) }}
{{- $toleration := dict "key" $controlPlane "operator" "Exists" "effect" "NoSchedule" }}
{{- $_ := set $component "tolerations" (append $component.tolerations $toleration) }}
{{- end }}
{{- end }}
{{- with $values.webhookConfiguration }}
{{- if and (hasKey . "enabled") (not .enabled) }}
{{- $_ := set $values.webhook "enabled" false }}
{{- end }}
{{- end }}
{{- end }}

{{/* nodeSelectors and resources: akri.oldPods (list COMPONENT AKRI OLD). */}}
{{- define "akri.oldPods" -}}
{{- $component := index . 0 }}
{{- $akri := index . 1 }}
{{- $old := index . 2 }}
{{- with $akri.nodeSelectors }}
{{- $_ := set $component "nodeSelector" (merge (deepCopy .) $component.nodeSelector) }}
{{- end }}
{{- /* Akri's defaults were measured for Akri's programs. */}}
{{- $resources := deepCopy $component.resources }}
{{- range $name, $path := dict "memoryRequest" "requests.memory" "cpuRequest" "requests.cpu" "memoryLimit" "limits.memory" "cpuLimit" "limits.cpu" }}
{{- $resources = omit $resources $name }}
{{- $value := get $akri.resources $name }}
{{- if and $value (ne $value (get $old.resources $name)) }}
{{- $parts := splitList "." $path }}
{{- $group := merge (dict (last $parts) $value) (default dict (get $resources (first $parts))) }}
{{- $_ := set $resources (first $parts) $group }}
{{- end }}
{{- end }}
{{- $_ := set $component "resources" $resources }}
{{- end }}

{{/* Handlers that run: akri.oldHandlers (list VALUES AKRI OLD). */}}
{{- define "akri.oldHandlers" -}}
{{- $values := index . 0 }}
{{- $akri := index . 1 }}
{{- $old := index . 2 }}
{{- range $key := list "debugEcho" "udev" "onvif" "opcua" }}
{{- $handler := get $values.handlers $key }}
{{- $source := (get $akri $key).discovery }}
{{- $full := and $akri.agent.full (or (ne $key "debugEcho") $akri.agent.allowDebugEcho) }}
{{- if or $source.enabled $full }}
{{- $_ := set $handler "enabled" true }}
{{- end }}
{{- include "akri.oldPods" (list $handler $source (get $old $key).discovery) }}
{{- end }}
{{- if ne $akri.udev.discovery.host.udev $old.udev.discovery.host.udev }}
{{- $_ := set $values.handlers.udev "udevDir" $akri.udev.discovery.host.udev }}
{{- end }}
{{- if not $akri.debugEcho.configuration.shared }}
{{- $_ := set $values.handlers.debugEcho "shared" false }}
{{- end }}
{{- end }}
