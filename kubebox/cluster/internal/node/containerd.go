package node

import (
	"bytes"
	"strconv"
	"text/template"
)

// The paths of containerd's files inside a node.
const (
	containerdConfig = "/etc/containerd/config.toml"
	containerdSocket = "/run/containerd/containerd.sock"
	cniConfigDir     = "/etc/cni/net.d"
)

// containerdTemplate disables plugins that need something a node lacks, or that only
// cost time. Out-of-memory scores are not changed where the kernel would not lower them.
var containerdTemplate = template.Must(template.New("containerd").Funcs(template.FuncMap{"quote": strconv.Quote}).Parse(
	`version = 3
root = '/var/lib/containerd'
state = '/run/containerd'
disabled_plugins = [
  'io.containerd.nri.v1.nri',
  'io.containerd.internal.v1.opt',
  'io.containerd.internal.v1.tracing',
  'io.containerd.tracing.processor.v1.otlp',
]

[grpc]
  address = {{quote .Socket}}

[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = {{quote .Sandbox}}
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = '/etc/containerd/certs.d'

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = {{.RestrictOOM}}
  netns_mounts_under_state_dir = true
  cdi_spec_dirs = ['/etc/cdi', '/run/cdi']
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [{{quote .CNI}}]
    conf_dir = {{quote .CNIConfig}}
    use_internal_loopback = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    runtime_path = {{quote .Shim}}
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = {{quote .Runc}}
      SystemdCgroup = false
`))

// containerd renders containerd's configuration.
func (c Config) containerd() []byte {
	var b bytes.Buffer
	err := containerdTemplate.Execute(&b, map[string]any{
		"Socket":      containerdSocket,
		"Sandbox":     SandboxImage,
		"RestrictOOM": !c.MayRaiseLimits,
		"CNI":         c.bin("cni"),
		"CNIConfig":   cniConfigDir,
		"Shim":        c.bin("containerd-shim-runc-v2"),
		"Runc":        c.bin("runc"),
	})
	if err != nil {
		panic(err) // the template and its keys are fixed
	}
	return b.Bytes()
}
