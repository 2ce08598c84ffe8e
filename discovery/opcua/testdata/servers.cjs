// Servers of node-opcua on the loopback device: a discovery server, and three servers that
// it knows. Usage: node servers.cjs DIRECTORY, which gets keys and certificates. Writes a
// line of JSON with the URLs when all are up, and ends with its standard input.
"use strict";
const path = require("node:path");
const { OPCUAServer, RegisterServerMethod } = require("node-opcua-server");
const { OPCUADiscoveryServer } = require("node-opcua-server-discovery");
const { OPCUACertificateManager } = require("node-opcua-certificate-manager");
const { MessageSecurityMode, SecurityPolicy } = require("node-opcua-secure-channel");
const { ApplicationType } = require("node-opcua-service-endpoints");

const host = "127.0.0.1";
const lds = `opc.tcp://${host}:4840`;

async function manager(name) {
  const created = new OPCUACertificateManager({
    rootFolder: path.join(process.argv[2], name), automaticallyAcceptUnknownCertificate: true,
  });
  await created.initialize();
  return created;
}

// start starts a server with endpoints for the security modes and policies.
async function start(name, port, type, modes, policies) {
  const server = new OPCUAServer({
    port, hostname: host, resourcePath: "/UA/" + name, serverCertificateManager: await manager(name),
    serverInfo: { applicationName: { text: name, locale: "en" }, applicationUri: "urn:plant:" + name, productUri: "urn:product", applicationType: type },
    securityModes: modes, securityPolicies: policies, disableDiscovery: false,
    registerServerMethod: RegisterServerMethod.LDS, discoveryServerEndpointUrl: lds,
    capabilitiesForMDNS: ["DA"],
  });
  const registered = new Promise((resolve) => server.once("serverRegistered", resolve));
  await server.start();
  await registered;
  return server;
}

async function main() {
  const discovery = new OPCUADiscoveryServer({
    port: 4840, hostname: host, serverCertificateManager: await manager("lds"), automaticallyAcceptUnknownCertificate: true,
    serverInfo: { applicationUri: "urn:plant:lds", applicationName: { text: "LDS" } },
  });
  await discovery.start();
  const none = [MessageSecurityMode.None];
  const secured = [MessageSecurityMode.Sign, MessageSecurityMode.SignAndEncrypt];
  const servers = [
    await start("Oven", 4841, ApplicationType.Server, none, [SecurityPolicy.None]),
    await start("Press", 4842, ApplicationType.ClientAndServer, [...none, ...secured], [SecurityPolicy.None, SecurityPolicy.Basic256Sha256]),
    await start("Safe", 4843, ApplicationType.Server, secured, [SecurityPolicy.Aes128_Sha256_RsaOaep, SecurityPolicy.Basic256Sha256]),
  ];
  process.stdout.write("ready " + JSON.stringify(servers.map((server) => server.getEndpointUrl())) + "\n");
  process.stdin.resume();
  process.stdin.once("end", () => process.exit(0));
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
