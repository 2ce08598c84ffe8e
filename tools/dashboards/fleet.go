package main

// instances, slotsUsed and slotsAll are what the leader and its standby replicas know, once.
const (
	instances = `max by (namespace, configuration, state) (akri_controller_instances{namespace=~"$namespace"})`
	slotsUsed = `max by (namespace, configuration) (akri_controller_slots{namespace=~"$namespace", state="used"})`
	slotsAll  = `sum by (namespace, configuration) (max by (namespace, configuration, state) (akri_controller_slots{namespace=~"$namespace"}))`
)

var fleet = dashboard{
	name: "fleet", title: "Fleet",
	description: "What Akri manages: Configurations, devices and slots, and what is wrong with them.",
	variables:   []variable{{"namespace", "akri_controller_instances"}},
	rows: []row{
		{"Now", []panel{
			{
				title: "Configurations", kind: number, width: 4,
				queries: []query{{`count(max by (namespace, configuration) (akri_controller_conditions{namespace=~"$namespace"}))`, ""}},
			},
			{
				title: "Not ready", kind: number, width: 4, alarming: true,
				description: "Configurations whose condition Ready is not True, except for those without a device.",
				queries: []query{{`count(max by (namespace, configuration) (akri_controller_conditions{namespace=~"$namespace", ` +
					`condition="Ready", reason!="NoInstances"}) == 0) or vector(0)`, ""}},
			},
			{title: "Devices", kind: number, width: 4, queries: []query{{`sum(` + instances + `)`, ""}}},
			{
				title: "Devices with failing objects", kind: number, width: 4, alarming: true,
				queries: []query{{`sum(max by (namespace, configuration) (akri_controller_instances{namespace=~"$namespace", state="failing"}))`, ""}},
			},
			{
				title: "Slots in use", kind: number, width: 4, unit: "percentunit",
				queries: []query{{`sum(` + slotsUsed + `) / sum(` + slotsAll + `)`, ""}},
			},
			{
				title: "Firing alerts", kind: number, width: 4, alarming: true,
				queries: []query{{`count(ALERTS{alertname=~"Akri.+", alertstate="firing"}) or vector(0)`, ""}},
			},
		}},
		{"Configurations", []panel{
			{
				title: "Devices", kind: graph, width: 12, description: "Devices that are known, by Configuration.",
				queries: []query{{`sum by (namespace, configuration) (` + instances + `)`, "{{namespace}}/{{configuration}}"}},
			},
			{
				title: "Devices that are not ready", kind: graph, width: 12,
				description: "Waiting: their objects are applied, but not ready. Failing: an object cannot be applied.",
				queries: []query{{`max by (namespace, configuration, state) (akri_controller_instances{namespace=~"$namespace", state!="ready"}) > 0`,
					"{{namespace}}/{{configuration}} {{state}}"}},
			},
			{
				title: "Slots in use", kind: graph, width: 12, unit: "percentunit",
				description: "Share of the slots that containers hold, by Configuration.",
				queries:     []query{{slotsUsed + ` / ` + slotsAll, "{{namespace}}/{{configuration}}"}},
			},
			{
				title: "Conditions that are not True", kind: table, width: 12, description: "docs/conditions.md explains the reasons.",
				queries: []query{{`max by (namespace, configuration, condition, reason) (akri_controller_conditions{namespace=~"$namespace"}) == 0`,
					""}},
			},
		}},
		{"Akri itself", []panel{
			{
				title: "Nodes with an agent", kind: graph, width: 8,
				queries: []query{{`sum(up{job="akri-agent"})`, "up"}, {`count(up{job="akri-agent"})`, "all"}},
			},
			{
				title: "Discovery handlers", kind: graph, width: 8, description: "Endpoints that agents know, by handler and state.",
				queries: []query{{`sum by (discovery_handler_name, state) (akri_discovery_handlers) > 0`, "{{discovery_handler_name}} {{state}}"}},
			},
			{
				title: "Versions", kind: table, width: 8, description: "Programs by version.",
				queries: []query{{`count by (component, version) (akri_build_info)`, "Value"}},
			},
			{
				title: "Alerts", kind: table, width: 24,
				queries: []query{{
					`max by (alertname, severity, namespace, configuration, node, job) (ALERTS{alertname=~"Akri.+", alertstate="firing"})`,
					""}},
			},
		}},
	},
}
