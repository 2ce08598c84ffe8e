package sbom

import (
	"bytes"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// CycloneDXType is the media type of [Program.CycloneDX].
const CycloneDXType = "application/vnd.cyclonedx+json"

// CycloneDX returns the bill of materials as CycloneDX 1.6 in JSON.
func (p Program) CycloneDX() ([]byte, error) {
	main := component(p.Main, cyclonedx.ComponentTypeApplication)
	main.Name = p.Name
	main.PackageURL += "#" + p.Package
	main.BOMRef = main.PackageURL
	main.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: p.SHA256}}
	var components []cyclonedx.Component
	var names []string
	for _, m := range p.Parts {
		part := component(m, cyclonedx.ComponentTypeLibrary)
		components = append(components, part)
		names = append(names, part.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(p.namespace())).URN()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: p.Created.UTC().Format(time.RFC3339),
		Component: &main,
		Tools: &cyclonedx.ToolsChoice{Components: &[]cyclonedx.Component{
			{Type: cyclonedx.ComponentTypeApplication, Name: p.Main.Path + "/release"},
		}},
		Properties: &[]cyclonedx.Property{{Name: "platform", Value: p.Platform}},
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &names}}
	var b bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return b.Bytes(), err
}

func component(m Module, kind cyclonedx.ComponentType) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef:     m.purl(),
		Type:       kind,
		Name:       m.Path,
		Version:    m.Version,
		PackageURL: m.purl(),
		Licenses:   &cyclonedx.Licenses{{Expression: m.License}},
	}
	if m.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.Sum}}
	}
	return c
}
