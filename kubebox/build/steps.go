package build

import (
	"context"
	"path/filepath"

	"akri.sh/akri/kubebox/image"
)

// The versions that are built, as the programs report them. Keep them in sync with
// the two go.mod files.
const (
	kubernetesVersion = "v1.37.1"
	corednsVersion    = "v1.14.6"
	containerdVersion = "v2.4.2"
	runcVersion       = "1.5.2"
)

const (
	kubenode = "kubenode"
	coredns  = "coredns"
)

// programs are the names of the links to kubenode. Tests that need only an API
// server use etcd, kube-apiserver and kubectl.
var programs = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"}

// nodePrograms are those of the programs that run on nodes.
var nodePrograms = []string{"kubelet", "kube-proxy"}

const (
	imageDir     = "images"
	pauseArchive = "images/pause.tar"
)

// archives maps the names of archives to their images.
var archives = map[string]image.Image{
	"pause.tar":    {Name: "akri.local/pause:1", Entrypoint: []string{"/pause"}},
	"workload.tar": {Name: "akri.local/workload:1", Entrypoint: []string{"/workload"}},
	// Stands in for a well-known image in examples that need no particular program.
	"nginx.tar": {Name: "docker.io/library/nginx:stable-alpine", Entrypoint: []string{"/workload"}, Env: []string{"PORTS=6052,80"}},
}

// shared returns the steps that do not depend on Kubernetes, in the order of their
// downloads' size: the first ones compile while the later ones download.
func (b *builder) shared() []step {
	return []step{b.own(), b.cni(), b.runc(), b.containerd(), b.nftables()}
}

// kubernetes returns the step that builds Kubernetes and etcd as one executable with
// several names.
func (b *builder) kubernetes(version string) step {
	source := filepath.Join(b.module, "kubernetes")
	g := goBuild{
		dir: source,
		out: b.result(kubenode),
		ldflags: "-X k8s.io/component-base/version.gitVersion=" + version +
			" -X k8s.io/client-go/pkg/version.gitVersion=" + version,
		targets: []string{"."},
	}
	all := g.inputs()
	if version != kubernetesVersion {
		g.dir = b.work("kubernetes")
	}
	return step{
		name:    "kubernetes",
		title:   "Kubernetes " + version + " and etcd",
		inputs:  all,
		results: append([]string{kubenode}, programs...),
		fetch: func(ctx context.Context) error {
			if g.dir != source {
				if err := b.generate(ctx, version, g.dir); err != nil {
					return err
				}
			}
			return g.fetch(ctx)
		},
		run: func(ctx context.Context) error {
			if err := b.compile(ctx, "Kubernetes", g); err != nil {
				return err
			}
			for _, p := range programs {
				if err := replaceLink(kubenode, b.result(p)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// coredns returns the step that builds the cluster's DNS server. It is in the module of
// Kubernetes, whose packages it shares.
func (b *builder) coredns() step {
	module := filepath.Join(b.module, "kubernetes")
	g := goBuild{
		dir:     module,
		sources: []string{filepath.Join(module, "coredns")},
		out:     b.result(coredns),
		targets: []string{"./coredns"},
	}
	return b.simple("coredns", "CoreDNS "+corednsVersion, g, coredns)
}

func (b *builder) containerd() step {
	const commands = "github.com/containerd/containerd/v2/cmd/"
	g := goBuild{
		dir:     filepath.Join(b.module, "runtime"),
		out:     b.result("") + "/",
		tags:    "no_btrfs no_devmapper no_zfs no_aufs",
		ldflags: "-X github.com/containerd/containerd/v2/version.Version=" + containerdVersion,
		targets: []string{commands + "containerd", commands + "containerd-shim-runc-v2", commands + "ctr"},
	}
	return b.simple("containerd", "containerd "+containerdVersion, g, "containerd", "containerd-shim-runc-v2", "ctr")
}

func (b *builder) cni() step {
	const plugins = "github.com/containernetworking/plugins/plugins/"
	g := goBuild{
		dir:     filepath.Join(b.module, "runtime"),
		out:     b.result("cni") + "/",
		targets: []string{plugins + "ipam/host-local", plugins + "main/ptp"},
	}
	return b.simple("cni", "CNI plugins", g, "cni/host-local", "cni/ptp")
}

// own returns the step that builds this module's programs that run in containers.
func (b *builder) own() step {
	g := goBuild{
		dir:     b.module,
		sources: []string{filepath.Join(b.module, "cmd", "pause"), filepath.Join(b.module, "cmd", "workload")},
		out:     b.result("") + "/",
		targets: []string{"./cmd/pause", "./cmd/workload"},
	}
	return b.simple("own", "pause and workload", g, "pause", "workload")
}

// images returns the step that writes the image archives.
func (b *builder) images() step {
	s := step{name: "images", title: "images", inputs: b.own().inputs}
	s.inputs.dirs = append(s.inputs.dirs, filepath.Join(b.module, "image"), filepath.Join(b.module, "build"))
	for name := range archives {
		s.results = append(s.results, filepath.Join(imageDir, name))
	}
	s.run = func(context.Context) error {
		for name, i := range archives {
			program := i.Entrypoint[0]
			i.Files = map[string]string{program: b.result(program)}
			if err := image.Write(b.result(filepath.Join(imageDir, name)), i); err != nil {
				return err
			}
		}
		return nil
	}
	return s
}

// simple returns a step that runs a single go build.
func (b *builder) simple(name, title string, g goBuild, results ...string) step {
	return step{
		name:    name,
		title:   title,
		inputs:  g.inputs(),
		results: results,
		fetch:   g.fetch,
		run:     func(ctx context.Context) error { return b.compile(ctx, title, g) },
	}
}
