package sbom

import (
	"bytes"
	"regexp"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// SPDXType is the media type of [Program.SPDX].
const SPDXType = "application/spdx+json"

// unknown is SPDX's word for what a document does not say.
const unknown = "NOASSERTION"

// SPDX returns the bill of materials as SPDX 2.3 in JSON.
func (p Program) SPDX() ([]byte, error) {
	main := spdxPackage(p.Main)
	main.PackageName = p.Name
	main.PrimaryPackagePurpose = "APPLICATION"
	main.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: p.SHA256}}
	main.PackageExternalReferences[0].Locator += "#" + p.Package
	document := spdx.Document{
		SPDXVersion:       spdx.Version,
		DataLicense:       spdx.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      p.Name + " " + p.Version + " " + p.Platform,
		DocumentNamespace: p.namespace(),
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: p.Main.Path + "/release"}},
			Created:  p.Created.UTC().Format(time.RFC3339),
		},
		Packages: []*spdx.Package{main},
		Relationships: []*spdx.Relationship{{
			RefA: common.MakeDocElementID("", "DOCUMENT"), RefB: ref(main), Relationship: common.TypeRelationshipDescribe,
		}},
	}
	for _, m := range p.Parts {
		part := spdxPackage(m)
		document.Packages = append(document.Packages, part)
		document.Relationships = append(document.Relationships,
			&spdx.Relationship{RefA: ref(main), RefB: ref(part), Relationship: common.TypeRelationshipContains})
	}
	var b bytes.Buffer
	err := spdxjson.Write(&document, &b, spdxjson.Indent(" "))
	return b.Bytes(), err
}

// notInID matches what an identifier of SPDX cannot contain.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func spdxPackage(m Module) *spdx.Package {
	p := &spdx.Package{
		PackageName:               m.Path,
		PackageSPDXIdentifier:     common.ElementID("Module-" + notInID.ReplaceAllString(m.Path, "-")),
		PackageVersion:            m.Version,
		PackageDownloadLocation:   unknown,
		FilesAnalyzed:             false,
		IsFilesAnalyzedTagPresent: true,
		PackageLicenseConcluded:   m.License,
		PackageLicenseDeclared:    m.License,
		PackageCopyrightText:      unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{
			{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: m.purl()},
		},
	}
	if m.Sum != "" {
		p.PackageSourceInfo = "go.sum: " + m.Sum
	}
	return p
}

func ref(p *spdx.Package) common.DocElementID {
	return common.MakeDocElementID("", string(p.PackageSPDXIdentifier))
}
