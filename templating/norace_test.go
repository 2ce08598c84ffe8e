//go:build !race

package templating_test

const raceDetector = false
