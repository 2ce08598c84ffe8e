//go:build race

package kubelet

const raceDetector = true
