// Package budget shares the memory of a process among the requests of agents, so that the
// devices and networks of some Configurations cannot stop the handler for all others.
//
// Always: if the budget is exceeded, the request that takes the most ends, with an error
// that names the limit and the remedy. Never: a request ends although there is room for all.
package budget
