package packages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// krewFile is the name of the manifest, which krew wants to be that of the plugin.
const krewFile = "akri.yaml"

// krewPlugin is the manifest of a plugin for krew.
type krewPlugin struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   krewName `json:"metadata"`
	Spec       krewSpec `json:"spec"`
}

type krewName struct {
	Name string `json:"name"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage,omitempty"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector   `json:"selector"`
	URI      string         `json:"uri"`
	SHA256   string         `json:"sha256"`
	Bin      string         `json:"bin"`
	Files    []krewMovement `json:"files"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"` // os and arch
}

type krewMovement struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// krewManifest returns the manifest for archives, whose checksums are those of sums.
func (o Options) krewManifest(archives []archive, sums map[string]string) ([]byte, error) {
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewName{"akri"},
		Spec: krewSpec{
			Version: o.Version, Homepage: o.Source,
			ShortDescription: "Explain and test devices with Akri",
			Description: "Akri finds devices, such as cameras, sensors and USB adapters, and makes them\n" +
				"available to Pods. This plugin checks Configurations before they are applied, shows\n" +
				"devices with their slots and objects, and says why a device is not in use.\n",
		},
	}
	for _, a := range archives {
		system, architecture, _ := strings.Cut(a.platform, "/")
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": system, "arch": architecture}},
			URI:      strings.TrimSuffix(o.Downloads, "/") + "/" + a.name, SHA256: sums[a.name], Bin: executable("kubectl-akri", a.platform),
			Files: []krewMovement{
				{executable("kubectl-akri", a.platform), "."}, {"LICENSE", "."}, {licensesFile, "."},
			},
		})
	}
	return yaml.Marshal(plugin)
}

func (o Options) writeKrew(archives []archive, sums map[string]string) error {
	text, err := o.krewManifest(archives, sums)
	if err != nil {
		return fmt.Errorf("the manifest for krew: %w", err)
	}
	return os.WriteFile(filepath.Join(o.Dir, krewFile), text, 0o644)
}
