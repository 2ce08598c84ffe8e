package onvif

import (
	"time"

	"akri.sh/akri/discovery/onvif/envelope"
)

// Bounds on what a network can make the handler do, for each request of an agent.
const (
	// maxCameras bounds the cameras that are remembered: twice as many devices as an agent
	// publishes for a Configuration. One takes up to 7 KiB, if all of its properties are as
	// long as they may be.
	maxCameras = 2000
	// maxCamerasPerHost bounds the cameras at one IP address, such as the channels of a
	// recorder, so that one host cannot take the place of all others.
	maxCamerasPerHost = 256
	// The following bound the cameras that are asked at the same time; see pools.go.
	maxQuickRequests = 128
	maxSlowRequests  = 32
	maxKnownRequests = 64
	// maxRequests bounds those of all Configurations. It is more than one Configuration may
	// have, so that one whose cameras do not answer does not stop the others.
	maxRequests = 256
	// maxRequestsPerHost bounds those at one IP address, so that one host cannot take all.
	maxRequestsPerHost = 8
	// maxMessages bounds the messages of WS-Discovery that are read in inflowPeriod: four of
	// each camera, which all answer a probe within half a second.
	maxMessages  = 4 * maxCameras
	inflowPeriod = 4 * time.Second
	// maxMessagesPerHost bounds those of one host: more than a recorder with
	// maxCamerasPerHost cameras sends for each kind of the two probes of the first round.
	maxMessagesPerHost = 1200
	// countedBytes is the size up to which a message counts once: most have 1 to 2 KiB.
	countedBytes = 2 << 10
	// maxWaitingMessages bounds the announcements that have been read and wait.
	maxWaitingMessages = 64
	// maxMessageBytes bounds a message of WS-Discovery.
	maxMessageBytes = envelope.MaxBytes
	// maxPropertyBytes bounds a value that a camera reports. Longer ones are cut, except
	// for URIs, which are left out.
	maxPropertyBytes = 512
	// maxProbesPerSecond bounds the unicast probes to the listed addresses.
	maxProbesPerSecond = 2000
)

// Times of the protocol between handler and cameras.
const (
	// recheckInterval is the interval between requests for the properties of a camera that
	// answers probes.
	recheckInterval = time.Minute
	// refusedInterval is the same for a camera that has refused the credentials. Many
	// cameras lock an account after some attempts.
	refusedInterval = 30 * time.Minute
	// minRetryDelay is the pause before a new camera that does not answer requests is
	// asked again: a camera may send Hello before its web server is up. After quickRetries
	// it doubles each time, up to the interval between probes; and at once if the request
	// took as long as slowRequest.
	minRetryDelay = 250 * time.Millisecond
	quickRetries  = 8
	slowRequest   = time.Second
	// minHelloPause is the minimum time between two Hellos of a camera that have an effect.
	minHelloPause = 5 * time.Second
	// minBeginPause is the minimum time between two searches for requests that are due.
	minBeginPause = 10 * time.Millisecond
	// requestTimeout bounds a request for the properties of a camera.
	requestTimeout = 15 * time.Second
	// checkAttempts is how often a camera that seems to be gone is asked before it is
	// believed to be. Each attempt takes up to 5 s, unless the connection is refused.
	checkAttempts = 3
	// minProbePause is the minimum time between a probe and another one that a Hello
	// without addresses causes.
	minProbePause = time.Second
	// minSendPause is the minimum time between two lists.
	minSendPause = 500 * time.Millisecond
	// maxFirstWait bounds how long the first list waits for slow cameras, after the time
	// for answers to the first probes.
	maxFirstWait = 10 * time.Second
	// minClockDifference is the difference of two readings of a clock that matters: cameras
	// accept credentials whose time is wrong by some seconds.
	minClockDifference = 5 * time.Second
	// minResendDelay and maxResendDelay are the pause before the copy of a probe.
	minResendDelay = 100 * time.Millisecond
	maxResendDelay = 300 * time.Millisecond
)

// The reasons of failures that the handler counts.
const (
	failedSocket       = "socket"
	failedMessage      = "bad_message"
	failedForeign      = "foreign_address"
	failedRate         = "too_many_messages"
	failedCameras      = "too_many_cameras"
	failedTimeout      = "timeout"
	failedUnreachable  = "unreachable"
	failedUnauthorized = "unauthorized"
	failedAnswer       = "bad_answer"
	failedURI          = "unsafe_uri"
	failedStream       = "no_stream"
	failedID           = "no_id"
	failedFilter       = "filter_item"
)
