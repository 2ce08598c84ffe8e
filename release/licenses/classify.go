package licenses

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/google/licenseclassifier/v2/assets"
)

// known has the licenses of texts that were classified before: most modules have the
// same few texts. It is bounded by the number of license files of the programs.
var known struct {
	sync.Mutex
	licenses map[[sha256.Size]byte][]string
}

// newClassifier reads the texts of all known licenses, which takes seconds.
var newClassifier = sync.OnceValues(assets.DefaultClassifier)

// classify returns the SPDX identifiers of the licenses in a text.
func classify(text []byte) ([]string, error) {
	known.Lock()
	defer known.Unlock()
	sum := sha256.Sum256(text)
	if licenses, found := known.licenses[sum]; found {
		return licenses, nil
	}
	c, err := newClassifier()
	if err != nil {
		return nil, fmt.Errorf("license classifier: %w", err)
	}
	var licenses []string
	for _, match := range c.Match(text).Matches {
		// Not the header of a file: it refers to a license, which has a file too.
		if match.MatchType == "License" {
			licenses = append(licenses, match.Name)
		}
	}
	if known.licenses == nil {
		known.licenses = map[[sha256.Size]byte][]string{}
	}
	known.licenses[sum] = licenses
	return licenses, nil
}
