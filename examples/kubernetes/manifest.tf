# The same object and its secrets from a file, without a cluster:
#   kubectl get --output yaml project.mongodbatlas.jet.crossplane.io/my-public
#   kubectl get --output yaml --namespace crossplane-system secret/in-secret secret/conn
data "statecrypt_resource" "archived_project" {
  file { path = "${path.module}/project.yaml" }

  object {
    api_version          = "mongodbatlas.jet.crossplane.io/v1alpha1"
    kind                 = "Project"
    name                 = "my-public"
    resource_type        = "mongodbatlas_project"
    provider_source      = "mongodb/mongodbatlas"
    identifier_attribute = "name"
  }

  method = "unencrypted"
}

output "archived_org" { value = data.statecrypt_resource.archived_project.attributes.org_id }
