"""Opens a .usda by USD's own library and prints, as JSON, where its skinned points are in the last frame."""

import json
import sys

from pxr import Usd, UsdGeom, UsdSkel

stage = Usd.Stage.Open(sys.argv[1])
end = stage.GetEndTimeCode()
cache = UsdSkel.Cache()
root = UsdSkel.Root(stage.GetDefaultPrim())
cache.Populate(root, Usd.TraverseInstanceProxies())
points = []
for prim in stage.Traverse():
    if not prim.IsA(UsdGeom.Mesh):
        continue
    skinning = cache.GetSkinningQuery(prim)
    skeleton = UsdSkel.BindingAPI(prim).GetInheritedSkeleton()
    query = cache.GetSkelQuery(skeleton)
    assert query and query.GetAnimQuery(), f"{prim.GetPath()} is not moved by a skeleton"
    transforms = query.ComputeSkinningTransforms(end)
    places = UsdGeom.Mesh(prim).GetPointsAttr().Get()
    assert skinning.ComputeSkinnedPoints(transforms, places, end)
    points.extend([p[0], p[1], p[2]] for p in places)
json.dump({"points": points, "metersPerUnit": UsdGeom.GetStageMetersPerUnit(stage)}, sys.stdout)
