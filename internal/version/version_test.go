package version

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestInfo(t *testing.T) {
	build := func(main string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: main}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "2469d3f0"}
	for name, tc := range map[string]struct {
		set             string
		build           *debug.BuildInfo
		version, commit string
	}{
		"set by the build":   {"v1.2.3", build("v0.0.0-20260101000000-2469d3f0abcd", revision), "v1.2.3", "2469d3f0"},
		"from the checkout":  {"", build("v0.0.0-20260101000000-2469d3f0abcd", revision), "v0.0.0-20260101000000-2469d3f0abcd", "2469d3f0"},
		"a bare commit":      {"2469d3f", build("(devel)", revision), "v0.0.0-unknown", "2469d3f0"},
		"outside repository": {"", build("(devel)"), "v0.0.0-unknown", "unknown"},
		"git describe":       {"v1.2.3-4-g2469d3f", build("(devel)"), "v1.2.3-4-g2469d3f", "2469d3f"},
		"uncommitted":        {"v0.0.0-g2469d3f-dirty", build("(devel)"), "v0.0.0-g2469d3f-dirty", "2469d3f"},
		"no build info":      {"", &debug.BuildInfo{}, "v0.0.0-unknown", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			got := infoOf(tc.set, "", tc.build)
			if got.Version != tc.version || got.Commit != tc.commit {
				t.Errorf("got %s, commit %s; want %s, commit %s", got.Version, got.Commit, tc.version, tc.commit)
			}
			if !Valid(got.Version) {
				t.Errorf("%s is not valid", got.Version)
			}
		})
	}
}

func TestCommitSetByBuild(t *testing.T) {
	if got := infoOf("v1.2.3-4-g2469d3f", "1111111", &debug.BuildInfo{}); got.Commit != "1111111" {
		t.Errorf("the commit is %s", got.Commit)
	}
}

func TestLine(t *testing.T) {
	line := Line("akri-agent")
	if !strings.HasPrefix(line, "akri-agent version v") || !strings.Contains(line, "go1.") || strings.Contains(line, "\n") {
		t.Error(line)
	}
}

func TestMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector("agent"))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "akri_build_info" || families[0].Metric[0].GetGauge().GetValue() != 1 {
		t.Fatalf("got %v, %v", families, err)
	}
	labels := map[string]string{}
	for _, label := range families[0].Metric[0].Label {
		labels[label.GetName()] = label.GetValue()
	}
	if labels["component"] != "agent" || labels["version"] != String() || labels["commit"] == "" || labels["go_version"] != Get().Go {
		t.Errorf("labels are %v", labels)
	}
}
