package main

var slots = dashboard{
	name: "slots", title: "Slots",
	description: "Which slots of devices are used, and how they are given to containers and released.",
	variables:   []variable{{"namespace", "akri_controller_slots"}, {"node", "akri_agent_slots"}},
	rows: []row{
		{"Use", []panel{
			{title: "Slots", kind: number, width: 4, queries: []query{{`sum(` + slotsAll + `)`, ""}}},
			{title: "In use", kind: number, width: 4, queries: []query{{`sum(` + slotsUsed + `)`, ""}}},
			{
				title: "Conflicting", kind: number, width: 4, alarming: true, description: "A container uses a device without holding its slot.",
				queries: []query{{`sum(akri_agent_slots{node=~"$node", state="conflicting"})`, ""}},
			},
			{
				title: "Instances that cannot be claimed", kind: number, width: 6, alarming: true,
				queries: []query{{`sum(akri_agent_unwritable_instances{node=~"$node"}) or vector(0)`, ""}},
			},
			{
				title: "Violated invariants", kind: number, width: 6, alarming: true, description: "Each is a bug.",
				queries: []query{{`sum(akri_agent_invariant_violations{node=~"$node"}) or vector(0)`, ""}},
			},
			{
				title: "Free slots", kind: graph, width: 12,
				queries: []query{{`max by (namespace, configuration) (akri_controller_slots{namespace=~"$namespace", state="free"})`,
					"{{namespace}}/{{configuration}}"}},
			},
			{title: "Used slots", kind: graph, width: 12, queries: []query{{slotsUsed, "{{namespace}}/{{configuration}}"}}},
			{
				title: "Slots of the nodes' devices", kind: graph, width: 24,
				description: "As the agents see them. A shared device counts on each node that sees it.",
				queries:     []query{{`sum by (node, state) (akri_agent_slots{node=~"$node"})`, "{{node}} {{state}}"}},
			},
		}},
		{"Claims and releases", []panel{
			{
				title: "Answers to Allocate", kind: graph, width: 8, unit: "ops", description: "granted, or the reason of the refusal.",
				queries: []query{{rate("outcome", `akri_agent_allocations_total{node=~"$node"}`), "{{outcome}}"}},
			},
			{
				title: "Claims", kind: graph, width: 8, unit: "ops",
				queries: []query{{rate("outcome", `akri_agent_claims_total{node=~"$node"}`), "{{outcome}}"}},
			},
			{
				title: "Releases", kind: graph, width: 8, unit: "ops",
				queries: []query{{rate("outcome", `akri_agent_releases_total{node=~"$node"}`), "{{outcome}}"}},
			},
			{
				title: "Time until a slot is released", kind: graph, width: 24, unit: "s",
				queries: []query{
					{quantile(0.5, "level", `akri_agent_release_latency_seconds_bucket{node=~"$node"}`), "{{level}} 50 %"},
					{quantile(0.99, "level", `akri_agent_release_latency_seconds_bucket{node=~"$node"}`), "{{level}} 99 %"},
				},
			},
		}},
	},
}
