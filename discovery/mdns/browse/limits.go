package browse

import "time"

// Bounds on what the network may send. Anyone in the network can announce anything.
const (
	// maxServices is how many services of one type are kept for an interface.
	maxServices = 1000
	// maxTypes is how many types of services are browsed for AllTypes.
	maxTypes = 100
	// maxRecordsPerName bounds records of one name and type, other than the services of a type.
	maxRecordsPerName = 16
	// maxRecords bounds the records of all interfaces, except that each interface may have
	// an equal part of them, whatever the others have.
	maxRecords = 10_000
	// maxTextBytes bounds a TXT record. RFC 6763 recommends 1300 bytes at most.
	maxTextBytes = 2048
	// maxPacketsPerSecond bounds the responses that are read from one interface by IPv4,
	// and by IPv6, after the first maxPacketBurst.
	maxPacketsPerSecond = 1000
	maxPacketBurst      = 2000
	// sendInterval is the minimum interval between the questions to one interface, so that
	// they are sent together, in at most maxSendBurst packets.
	sendInterval = 250 * time.Millisecond
	maxSendBurst = 25
)

// Bounds on times to live. A device that announces a shorter or longer one is treated as
// if it had announced these.
const (
	minTTL = 5 * time.Second
	maxTTL = 2 * time.Hour
)

const (
	// goodbyeDelay is how long a record is kept after its goodbye, or after another
	// record has replaced it: the device, or another one, may correct it (RFC 6762, 10.1
	// and 10.2).
	goodbyeDelay = time.Second
	// verifyWindow is how long a record is kept beyond its time to live, while questions
	// about it are repeated. If a third of all packets is lost, a question succeeds with
	// a probability of 4/9; the attempts before and in this window fail together with
	// one of 10^-8.
	verifyWindow = 30 * time.Second
	// repeatInterval is the time between those questions, and the minimum between any two
	// equal questions (RFC 6762, 5.2).
	repeatInterval = time.Second
	// maxUnanswered is how many of those questions a host answers with other records of the
	// same name and type before these count as replacements.
	maxUnanswered = 3
	// lookahead is how much earlier than planned a question about an expiring record is
	// asked, to send it together with others.
	lookahead = 500 * time.Millisecond
	// maxInterval is the longest interval between questions for services of a type.
	maxInterval = time.Hour
	// textWait is how long a service is held back that has no TXT record. Each service
	// should have one.
	textWait = 3 * time.Second
	// settleTime is how long the answers to the first questions are collected before a
	// list is complete. It includes the questions after 0, 1 and 3 s.
	settleTime = 3500 * time.Millisecond
	// batchTime is how long further packets are awaited before changes are handled.
	batchTime = 50 * time.Millisecond
	// rescanInterval is how often the interfaces are listed, and rescanSoon how long after
	// one does not send, as it may return within verifyWindow.
	rescanInterval = time.Minute
	rescanSoon     = 5 * time.Second
)
