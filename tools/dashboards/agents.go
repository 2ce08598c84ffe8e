package main

var agents = dashboard{
	name: "agents", title: "Agents and discovery",
	description: "The agents and the discovery handlers, by node.",
	variables:   []variable{{"node", `up{job="akri-agent"}`}},
	rows: []row{
		{"Agents", []panel{
			{
				title: "Agents down", kind: number, width: 4, alarming: true,
				queries: []query{{`count(up{job="akri-agent", node=~"$node"} == 0) or vector(0)`, ""}},
			},
			{
				title: "Resources without the kubelet", kind: number, width: 5, alarming: true,
				description: "Resources that the agents offer, but no kubelet listens to.",
				queries:     []query{{`sum(akri_agent_resources{node=~"$node", state="disconnected"})`, ""}},
			},
			{
				title: "Observers that fail", kind: number, width: 5, alarming: true, description: "Agents that cannot release slots.",
				queries: []query{{`sum(akri_agent_observer{node=~"$node", state="failing"})`, ""}},
			},
			{
				title: "Discovery failures", kind: number, width: 5, alarming: true,
				queries: []query{{`sum(akri_discovery_failures{node=~"$node"}) or vector(0)`, ""}},
			},
			{title: "Devices seen", kind: number, width: 5, queries: []query{{`sum(akri_instance_count{node=~"$node"})`, ""}}},
			{
				title: "Instances", kind: graph, width: 8, description: "Instances that list the node.",
				queries: []query{{`sum by (node) (akri_instance_count{node=~"$node"})`, "{{node}}"}},
			},
			{
				title: "Memory", kind: graph, width: 8, unit: "bytes",
				queries: []query{{`process_resident_memory_bytes{job="akri-agent", node=~"$node"}`, "{{node}}"}},
			},
			{
				title: "CPU", kind: graph, width: 8, unit: "none",
				queries: []query{{`rate(process_cpu_seconds_total{job="akri-agent", node=~"$node"}[$__rate_interval])`, "{{node}}"}},
			},
			{
				title: "How slots in use are observed", kind: graph, width: 12, description: "docs/metrics.md explains the states.",
				queries: []query{{`sum by (state) (akri_agent_observer{node=~"$node"})`, "{{state}}"}},
			},
			{
				title: "Resources", kind: graph, width: 12,
				queries: []query{{`sum by (state) (akri_agent_resources{node=~"$node"})`, "{{state}}"}},
			},
		}},
		{"Discovery", []panel{
			{
				title: "Handlers", kind: graph, width: 8, description: "Endpoints that agents know, by state.",
				queries: []query{{`sum by (discovery_handler_name, state) (akri_discovery_handlers{node=~"$node"})`,
					"{{discovery_handler_name}} {{state}}"}},
			},
			{
				title: "Streams", kind: graph, width: 8,
				queries: []query{{`sum by (discovery_handler_name, state) (akri_discovery_streams{node=~"$node"})`,
					"{{discovery_handler_name}} {{state}}"}},
			},
			{
				title: "Errors", kind: graph, width: 8, unit: "ops",
				queries: []query{{rate("discovery_handler_name, reason", `akri_discovery_errors_total{node=~"$node"}`),
					"{{discovery_handler_name}} {{reason}}"}},
			},
			{
				title: "Lists of devices", kind: graph, width: 8, unit: "ops", description: "How often handlers report.",
				queries: []query{{rate("discovery_handler_name", `akri_discovery_messages_total{node=~"$node"}`),
					"{{discovery_handler_name}}"}},
			},
			{
				title: "Devices found by built-in handlers", kind: graph, width: 8,
				queries: []query{{`sum by (job) (akri_handler_devices{node=~"$node"})`, "{{job}}"}},
			},
			{
				title: "Changes of devices", kind: graph, width: 8, unit: "ops", description: "Devices that appear, disappear or change.",
				queries: []query{{rate("job, change", `akri_handler_device_changes_total{node=~"$node"}`), "{{job}} {{change}}"}},
			},
			{
				title: "Duration of scans", kind: graph, width: 12, unit: "s",
				queries: []query{{`sum by (job) (rate(akri_handler_scan_duration_seconds_sum{node=~"$node"}[$__rate_interval])) / ` +
					rate("job", `akri_handler_scan_duration_seconds_count{node=~"$node"}`), "{{job}} mean"}},
			},
			{
				title: "Failures of built-in handlers", kind: graph, width: 12, unit: "ops",
				queries: []query{{rate("job, reason", `akri_handler_failures_total{node=~"$node"}`), "{{job}} {{reason}}"}},
			},
		}},
	},
}
